// Windows as bars on lanes, drawn on a canvas: 30 lanes of 200 windows take a few milliseconds.
//
// data: {now, watermark, graceMs, keys, windows: [[lane, start, end, state, count, revision, id]]}
// Times are milliseconds. A window that is not sealed has the state "open" and no id.
const LANE = 30, HEAD = 30, FOOT = 6, ROUND = 4;
const WORST = ["dead", "retrying", "leased", "waiting", "open", "acked", "skipped"];
const WORDS = {
  open: "open", waiting: "sealed, waiting", leased: "leased", acked: "acked", retrying: "failed, will be retried",
  dead: "dead letter", skipped: "skipped by this group",
};
const STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 21600, 43200, 86400].map((s) => s * 1000);

export default {
  template: `
    <div class="qs-timeline-box" ref="box">
      <canvas ref="canvas" tabindex="0" role="img" :aria-label="label"
        @wheel.prevent="wheel" @pointerdown="press" @pointermove="move" @pointerup="release" @pointercancel="cancel"
        @pointerleave="hover = null; draw()" @keydown="key" @dblclick="setFollow(true)"></canvas>
      <div v-if="tip" class="qs-tip" :style="{left: tip.x + 'px', top: tip.y + 'px'}">
        <b>{{ tip.key }}</b><span>{{ tip.time }}</span><span>{{ tip.count }}</span><em :class="tip.state">{{ tip.word }}</em>
      </div>
    </div>`,
  data: () => ({ tip: null, hover: null, label: "Timeline of windows" }),
  mounted() {
    this.from = Date.now() - 300000; this.to = Date.now() + 20000; this.following = true; this.skew = 0;
    this.shown = { keys: [], windows: [], now: Date.now() };
    this.lanes = [];
    this.sizer = new ResizeObserver(() => this.draw());
    this.sizer.observe(this.$refs.box);
    this.theme = new MutationObserver(() => { this.colors = null; this.draw(); });
    this.theme.observe(document.body, { attributes: true, attributeFilter: ["class"] });
    this.beat = setInterval(() => { if (this.following && !document.hidden) this.draw(); }, 200);
    this.$emit("follow", true);
  },
  unmounted() { clearInterval(this.beat); this.sizer.disconnect(); this.theme.disconnect(); },
  methods: {
    // Called by the server
    show(data) {
      this.skew = data.now - Date.now();
      this.shown = data;
      this.lanes = data.keys.map((key) => ({ key, bars: [], rows: 1 }));
      const newest = new Map();
      for (const each of data.windows) {
        const [lane, start, end, state, count, revision, id] = each;
        const at = lane + "/" + start + "/" + end, other = newest.get(at);
        if (!other || revision > other.revision) newest.set(at, { lane, start, end, state, count, revision, id });
      }
      for (const bar of newest.values()) this.lanes[bar.lane]?.bars.push(bar);
      for (const lane of this.lanes) this.stack(lane);
      this.reselect();
      const counts = {};
      for (const bar of newest.values()) counts[bar.state] = (counts[bar.state] || 0) + 1;
      const said = WORST.filter((s) => counts[s]).map((s) => counts[s] + " " + WORDS[s]).join(", ");
      this.label = "Timeline of " + this.lanes.length + " keys: " + (said || "no windows");
      this.$refs.canvas.dataset.states = JSON.stringify(counts);
      this.draw();
    },
    setSpan(span) {
      const middle = this.following ? this.clock() : (this.from + this.to) / 2;
      if (this.following) { this.to = middle + span * 0.12; this.from = this.to - span; }
      else { this.from = middle - span / 2; this.to = middle + span / 2; }
      this.changed();
    },
    setFollow(on) {
      this.following = on;
      this.$emit("follow", on);
      this.changed();
    },
    // Layout
    clock() { return Date.now() + this.skew; },
    gutter() { return Math.min(150, Math.max(76, this.$refs.box.clientWidth * 0.14)); },
    x(time) { return this.gutter() + ((time - this.from) / (this.to - this.from)) * (this.$refs.box.clientWidth - this.gutter()); },
    time(x) { return this.from + ((x - this.gutter()) / (this.$refs.box.clientWidth - this.gutter())) * (this.to - this.from); },
    stack(lane) {
      // Overlapping windows are stacked.
      lane.bars.sort((a, b) => a.start - b.start || a.end - b.end);
      const ends = [];
      for (const bar of lane.bars) {
        let row = ends.findIndex((end) => end <= bar.start);
        if (row < 0) row = ends.length;
        ends[row] = bar.end; bar.row = row;
      }
      lane.rows = Math.max(1, ends.length);
    },
    place(bar, n) {
      const lane = this.lanes[n], height = (LANE - 8) / lane.rows;
      const left = this.x(bar.start), right = this.x(bar.end);
      return { x: left + 0.75, y: HEAD + n * LANE + 4 + bar.row * height, w: Math.max(1.5, right - left - 1.5), h: height - (lane.rows > 1 ? 1 : 0) };
    },
    find(x, y) {
      const n = Math.floor((y - HEAD) / LANE), lane = this.lanes[n];
      if (!lane || x < this.gutter()) return null;
      for (let k = lane.bars.length - 1; k >= 0; k--) {
        const p = this.place(lane.bars[k], n);
        if (x >= p.x - 1 && x <= p.x + p.w + 1 && y >= p.y - 1 && y <= p.y + p.h + 1) return { ...lane.bars[k], key: lane.key, n };
      }
      return null;
    },
    reselect() {
      // The selected window as it is now, perhaps in another state or lane.
      const old = this.hover;
      if (!old) return;
      const n = this.lanes.findIndex((lane) => lane.key === old.key);
      const bar = this.lanes[n]?.bars.find((b) => b.start === old.start && b.end === old.end);
      this.hover = bar ? { ...bar, key: old.key, n } : null;
      if (this.tip) this.explain();
    },
    // Input
    wheel(event) {
      const box = this.$refs.canvas.getBoundingClientRect(), x = event.clientX - box.left;
      if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
        this.pan(((event.deltaX || event.deltaY) / box.width) * (this.to - this.from));
        return;
      }
      this.zoom(Math.exp(event.deltaY * 0.0016), this.following ? this.clock() : this.time(x));
    },
    zoom(by, around) {
      const span = Math.max(2000, Math.min(7 * 86400000, (this.to - this.from) * by)), share = (around - this.from) / (this.to - this.from);
      this.from = around - share * span; this.to = this.from + span;
      this.changed();
    },
    pan(by) {
      if (this.following) { this.following = false; this.$emit("follow", false); }
      this.from += by; this.to += by;
      this.changed();
    },
    press(event) {
      this.grip = { x: event.clientX, y: event.clientY, from: this.from, to: this.to, moved: false };
      this.$refs.canvas.setPointerCapture(event.pointerId);
    },
    move(event) {
      const box = this.$refs.canvas.getBoundingClientRect(), x = event.clientX - box.left, y = event.clientY - box.top;
      if (this.grip) {
        const by = event.clientX - this.grip.x;
        if (Math.abs(by) > 3 || this.grip.moved) {
          this.grip.moved = true; this.tip = null;
          const span = this.grip.to - this.grip.from, back = (by / (box.width - this.gutter())) * span;
          if (this.following) { this.following = false; this.$emit("follow", false); }
          this.from = this.grip.from - back; this.to = this.grip.to - back;
          this.changed();
        }
        return;
      }
      this.hover = this.find(x, y);
      this.explain();
      this.$refs.canvas.style.cursor = this.hover ? "pointer" : "grab";
      this.draw();
    },
    release(event) {
      const grip = this.grip;
      this.grip = null;
      if (grip && !grip.moved) {
        const box = this.$refs.canvas.getBoundingClientRect(), bar = this.find(event.clientX - box.left, event.clientY - box.top);
        if (bar) this.pick(bar);
      }
    },
    cancel() { this.grip = null; },
    key(event) {
      const span = this.to - this.from, steps = { ArrowLeft: -0.15, ArrowRight: 0.15 };
      if (event.key in steps) this.pan(steps[event.key] * span);
      else if (event.key === "+" || event.key === "=") this.zoom(0.7, this.following ? this.clock() : (this.from + this.to) / 2);
      else if (event.key === "-") this.zoom(1.4, this.following ? this.clock() : (this.from + this.to) / 2);
      else if (event.key === "f") this.setFollow(!this.following);
      else if (["ArrowDown", "ArrowUp", "[", "]"].includes(event.key)) this.walk(event.key);
      else if (event.key === "Enter" && this.hover) this.pick(this.hover);
      else return;
      event.preventDefault();
    },
    walk(key) {
      // Keyboard: [ and ] move within a lane, up and down between lanes.
      let n = this.hover?.n ?? 0, lane = this.lanes[n];
      if (!lane) return;
      let k = this.hover ? lane.bars.findIndex((b) => b.start === this.hover.start && b.end === this.hover.end) : lane.bars.length - 1;
      if (key === "[") k = Math.max(0, k - 1);
      if (key === "]") k = Math.min(lane.bars.length - 1, k + 1);
      if (key === "ArrowDown" || key === "ArrowUp") {
        n = Math.max(0, Math.min(this.lanes.length - 1, n + (key === "ArrowDown" ? 1 : -1)));
        lane = this.lanes[n];
        const start = this.hover?.start ?? Infinity;
        k = lane.bars.findIndex((b) => b.end > start);
        if (k < 0) k = lane.bars.length - 1;
      }
      if (lane.bars[k]) { this.hover = { ...lane.bars[k], key: lane.key, n }; this.explain(); this.draw(); }
    },
    pick(bar) { this.$emit("pick", { key: bar.key, start: bar.start, end: bar.end, id: bar.id, state: bar.state, count: bar.count }); },
    explain() {
      const bar = this.hover;
      if (!bar) { this.tip = null; return; }
      const p = this.place(bar, bar.n), text = (t) => new Date(t).toISOString().slice(11, 19);
      this.tip = {
        key: bar.key === "__GLOBAL__" ? "all keys" : bar.key, time: text(bar.start) + " – " + text(bar.end), state: bar.state,
        count: bar.count + (bar.count === 1 ? " record" : " records") + (bar.revision > 1 ? " · revision " + bar.revision : ""),
        word: WORDS[bar.state], x: Math.max(8, Math.min(this.$refs.box.clientWidth - 210, p.x)), y: p.y + p.h + 8,
      };
    },
    changed() {
      this.draw();
      clearTimeout(this.telling);
      this.telling = setTimeout(() => this.$emit("range", { from: this.from, to: this.to, follow: this.following }), 250);
    },
    // Drawing
    palette() {
      if (this.colors) return this.colors;
      const css = getComputedStyle(document.body), found = { font: css.fontFamily };
      for (const name of ["ink", "soft", "faint", "line", "panel", "bg", "accent", "good", "warn", "bad", "wait", "lane"]) found[name] = css.getPropertyValue("--" + name).trim();
      return (this.colors = found);
    },
    draw() {
      const canvas = this.$refs.canvas, box = this.$refs.box;
      if (!canvas || !box.clientWidth) return;
      if (this.following) { const span = this.to - this.from; this.to = this.clock() + span * 0.12; this.from = this.to - span; }
      const w = box.clientWidth, h = HEAD + Math.max(1, this.lanes.length) * LANE + FOOT, ratio = window.devicePixelRatio || 1;
      if (canvas.width !== Math.round(w * ratio) || canvas.height !== Math.round(h * ratio)) {
        canvas.width = Math.round(w * ratio); canvas.height = Math.round(h * ratio); canvas.style.height = h + "px";
      }
      const g = canvas.getContext("2d"), c = this.palette(), left = this.gutter();
      g.setTransform(ratio, 0, 0, ratio, 0, 0);
      g.clearRect(0, 0, w, h);
      this.grid(g, c, w, h, left);
      g.save();
      g.beginPath(); g.rect(left, HEAD - 2, w - left, h); g.clip();
      const width = this.to - this.from;
      this.lanes.forEach((lane, n) => {
        for (const bar of lane.bars) if (bar.end > this.from - width * 0.01 && bar.start < this.to) this.bar(g, c, bar, n);
      });
      g.restore();
      this.marks(g, c, w, h, left);
      this.names(g, c, left);
    },
    grid(g, c, w, h, left) {
      const span = this.to - this.from, room = (w - left) / 92, step = STEPS.find((s) => span / s <= room) || 86400000;
      this.lanes.forEach((lane, n) => {
        if (n % 2 === 0) { g.fillStyle = c.lane; g.fillRect(left, HEAD + n * LANE, w - left, LANE); }
      });
      g.font = "11px " + c.font; g.textAlign = "center"; g.lineWidth = 1;
      for (let t = Math.ceil(this.from / step) * step; t < this.to; t += step) {
        const x = Math.round(this.x(t)) + 0.5;
        if (x < left) continue;
        g.strokeStyle = c.line; g.beginPath(); g.moveTo(x, HEAD - 6); g.lineTo(x, h - FOOT); g.stroke();
        const text = new Date(t).toISOString();
        g.fillStyle = c.faint;
        if (x > left + 22 && x < w - 26) g.fillText(step >= 86400000 ? text.slice(5, 10) : step < 60000 ? text.slice(11, 19) : text.slice(11, 16), x, 14);
      }
    },
    names(g, c, left) {
      g.font = "500 12px " + c.font; g.textAlign = "right"; g.textBaseline = "middle";
      this.lanes.forEach((lane, n) => {
        let text = lane.key === "__GLOBAL__" ? "all keys" : lane.key;
        while (text.length > 2 && g.measureText(text).width > left - 20) text = text.slice(0, -2) + "…";
        g.fillStyle = this.hover?.n === n ? c.ink : c.soft;
        g.fillText(text, left - 12, HEAD + n * LANE + LANE / 2);
      });
      g.textBaseline = "alphabetic";
    },
    bar(g, c, bar, n) {
      const p = this.place(bar, n), r = Math.min(ROUND, p.w / 2, p.h / 2);
      const hovered = this.hover && this.hover.n === n && this.hover.start === bar.start && this.hover.end === bar.end;
      const shape = () => { g.beginPath(); g.roundRect(p.x, p.y, p.w, p.h, r); };
      const fill = (color, alpha) => { g.globalAlpha = alpha; g.fillStyle = color; shape(); g.fill(); g.globalAlpha = 1; };
      const edge = (color, dash, width) => { g.strokeStyle = color; g.lineWidth = width || 1.2; g.setLineDash(dash || []); g.beginPath(); g.roundRect(p.x + 0.6, p.y + 0.6, Math.max(0.5, p.w - 1.2), p.h - 1.2, r); g.stroke(); g.setLineDash([]); };
      const hatch = (color, gap, shift, width) => {
        g.save(); shape(); g.clip(); g.strokeStyle = color; g.lineWidth = width; g.beginPath();
        for (let x = p.x - p.h - gap + shift; x < p.x + p.w + p.h; x += gap) { g.moveTo(x, p.y + p.h); g.lineTo(x + p.h, p.y); }
        g.stroke(); g.restore();
      };
      let ink = c.soft;
      switch (bar.state) {
        case "open": {
          const now = this.clock();
          g.save(); shape(); g.clip(); g.globalAlpha = 0.2; g.fillStyle = c.accent;
          g.fillRect(p.x, p.y, Math.max(0, Math.min(p.w, this.x(now) - p.x)), p.h); g.restore();
          edge(c.accent, [3, 3], 1.2); ink = c.accent; break;
        }
        case "waiting": fill(c.wait, 0.28); edge(c.wait); ink = c.ink; break;
        case "leased": fill(c.accent, 0.95); hatch(c.panel + "66", 9, (this.clock() / 60) % 9, 2.4); ink = "#1d1b18"; break;
        case "acked": fill(c.good, 0.82); ink = "#0e2219"; break;
        case "retrying": fill(c.warn, 0.22); hatch(c.warn, 6, 0, 1.6); edge(c.warn); ink = null; break;
        case "dead": {
          fill(c.bad, 0.95);
          if (p.w > 7 && p.h > 9) {
            const x = p.x + p.w / 2, y = p.y + p.h / 2, s = Math.min(4, p.w / 3);
            g.strokeStyle = c.panel; g.lineWidth = 1.8; g.beginPath(); g.moveTo(x - s, y - s); g.lineTo(x + s, y + s); g.moveTo(x + s, y - s); g.lineTo(x - s, y + s); g.stroke();
          }
          ink = null; break;
        }
        default: g.globalAlpha = 0.5; g.fillStyle = c.faint; g.fillRect(p.x, p.y + p.h / 2 - 1.5, p.w, 3); g.globalAlpha = 1; ink = null;
      }
      if (ink && p.w > 26 && p.h > 13) {
        g.fillStyle = ink; g.font = "500 10.5px " + c.font; g.textAlign = "center"; g.textBaseline = "middle";
        g.fillText(bar.count, p.x + p.w / 2, p.y + p.h / 2 + 0.5); g.textBaseline = "alphabetic";
      }
      if (bar.revision > 1 && p.w > 4) {
        const s = Math.min(8, p.w * 0.6);
        g.fillStyle = c.ink; g.beginPath(); g.moveTo(p.x + p.w - s, p.y); g.lineTo(p.x + p.w, p.y); g.lineTo(p.x + p.w, p.y + s); g.closePath(); g.fill();
      }
      if (hovered) { g.strokeStyle = c.ink; g.lineWidth = 1.6; g.beginPath(); g.roundRect(p.x - 1.5, p.y - 1.5, p.w + 3, p.h + 3, r + 1.5); g.stroke(); }
    },
    marks(g, c, w, h, left) {
      const line = (time, color, text, dash, hasLabel) => {
        if (time == null) return;
        const x = Math.round(this.x(time)) + 0.5;
        if (x < left || x > w) return;
        g.strokeStyle = color; g.lineWidth = 1.4; g.setLineDash(dash); g.beginPath(); g.moveTo(x, HEAD - 8); g.lineTo(x, h - FOOT); g.stroke(); g.setLineDash([]);
        if (!hasLabel) return;
        g.font = "600 10px " + c.font;
        const width = g.measureText(text).width + 10, at = Math.min(w - width - 2, Math.max(left, x - width / 2));
        g.fillStyle = color; g.beginPath(); g.roundRect(at, HEAD - 12, width, 14, 7); g.fill();
        g.fillStyle = c.panel; g.textAlign = "center"; g.fillText(text, at + width / 2, HEAD - 1.5);
      };
      // Lines are always drawn; of labels that would overlap, only the more important one.
      const now = this.clock(), mark = this.shown.watermark, apart = (a, b, by) => Math.abs(this.x(a) - this.x(b)) > by;
      if (mark != null && this.shown.graceMs) {
        const a = Math.max(left, this.x(mark)), b = Math.min(w, this.x(now));
        if (b > a) { g.globalAlpha = 0.06; g.fillStyle = c.accent; g.fillRect(a, HEAD, b - a, h - HEAD - FOOT); g.globalAlpha = 1; }
        const edge = now - this.shown.graceMs;
        line(edge, c.faint, "grace", [2, 3], apart(edge, now, 46) && apart(edge, mark, 62));
      }
      line(mark, c.soft, "watermark", [5, 3], apart(mark, now, 62));
      line(now, c.accent, "now", [], true);
    },
  },
};
