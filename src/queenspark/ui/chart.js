// Lines over a common time axis, on a canvas; hovering shows the values.
export default {
  template: `
    <div class="qs-chart-box" @mousemove="point" @mouseleave="leave">
      <div class="qs-legend">
        <span v-for="(line, n) in lines" :key="line.name"><i :class="line.tone"></i>{{ line.name }}<b>{{ shown(n) }}</b></span>
        <em>{{ when }}</em>
      </div>
      <canvas ref="canvas" :style="{height: height + 'px'}" role="img" :aria-label="lines.map((l) => l.name).join(', ')"></canvas>
    </div>`,
  props: { lines: Array, times: Array, values: Array, unit: String, height: Number },
  data: () => ({ at: null }),
  computed: {
    index() { return this.at ?? (this.times?.length ?? 0) - 1; },
    when() { return this.at === null || !this.times ? "" : this.times[this.at].slice(11, 19); },
  },
  watch: { times() { this.draw(); }, at() { this.draw(); } },
  mounted() {
    this.sizer = new ResizeObserver(() => this.draw());
    this.sizer.observe(this.$refs.canvas);
    this.theme = new MutationObserver(() => this.draw());
    this.theme.observe(document.body, { attributes: true, attributeFilter: ["class"] });
  },
  unmounted() { this.sizer.disconnect(); this.theme.disconnect(); },
  methods: {
    shown(n) {
      const value = this.values?.[n]?.[this.index];
      if (value === undefined) return "–";
      const digits = value >= 100 || Number.isInteger(value) ? 0 : value >= 10 ? 1 : 2;
      return value.toLocaleString("en-US", { maximumFractionDigits: digits }) + (this.unit ? " " + this.unit : "");
    },
    point(event) {
      const box = this.$refs.canvas.getBoundingClientRect();
      if (!this.times?.length) return;
      const share = (event.clientX - box.left - 2) / (box.width - 4);
      this.at = Math.max(0, Math.min(this.times.length - 1, Math.round(share * (this.times.length - 1))));
    },
    leave() { this.at = null; },
    draw() {
      const canvas = this.$refs.canvas;
      if (!canvas || !canvas.clientWidth) return;
      const ratio = window.devicePixelRatio || 1, w = canvas.clientWidth, h = this.height;
      canvas.width = w * ratio; canvas.height = h * ratio;
      const g = canvas.getContext("2d");
      g.scale(ratio, ratio);
      const css = getComputedStyle(document.body), color = (name) => css.getPropertyValue(name).trim();
      const values = this.values ?? [], count = this.times?.length ?? 0;
      const top = Math.max(1e-9, ...values.flat());
      const step = Math.pow(10, Math.floor(Math.log10(top))), nice = [1, 2, 2.5, 5, 10, 20].map((m) => m * step).find((v) => v >= top * 1.02);
      const x = (n) => 2 + (count < 2 ? 0 : (n / (count - 1)) * (w - 4)), y = (v) => h - 18 - (v / nice) * (h - 30);
      g.font = "11px " + css.fontFamily; g.lineWidth = 1;
      for (const part of [0, 0.5, 1]) {
        const line = Math.round(y(part * nice)) + 0.5;
        g.strokeStyle = color("--line"); g.beginPath(); g.moveTo(0, line); g.lineTo(w, line); g.stroke();
        if (part) { g.fillStyle = color("--faint"); g.textAlign = "left"; g.fillText((part * nice).toLocaleString("en-US"), 2, line - 4); }
      }
      if (count < 2) return;
      g.fillStyle = color("--faint");
      const marks = w > 500 ? 4 : 2;
      for (let m = 0; m <= marks; m++) {
        const n = Math.round((m / marks) * (count - 1));
        g.textAlign = m === 0 ? "left" : m === marks ? "right" : "center";
        g.fillText(this.times[n].slice(11, 16), x(n), h - 3);
      }
      this.lines.forEach((line, k) => {
        const data = values[k] ?? [], tone = color("--" + line.tone);
        g.beginPath();
        data.forEach((v, n) => (n ? g.lineTo(x(n), y(v)) : g.moveTo(x(n), y(v))));
        g.strokeStyle = tone; g.lineWidth = 1.6; g.lineJoin = "round";
        g.setLineDash(line.dash ? [4, 3] : []); g.stroke(); g.setLineDash([]);
        if (k === 0) {
          g.lineTo(x(count - 1), y(0)); g.lineTo(x(0), y(0)); g.closePath();
          const fade = g.createLinearGradient(0, 0, 0, h);
          fade.addColorStop(0, tone + "38"); fade.addColorStop(1, tone + "00");
          g.fillStyle = fade; g.fill();
        }
      });
      if (this.at !== null) {
        g.strokeStyle = color("--faint"); g.lineWidth = 1; g.beginPath(); g.moveTo(x(this.at), 6); g.lineTo(x(this.at), h - 18); g.stroke();
        this.lines.forEach((line, k) => { g.fillStyle = color("--" + line.tone); g.beginPath(); g.arc(x(this.at), y(values[k][this.at]), 3, 0, 7); g.fill(); });
      }
    },
  },
};
