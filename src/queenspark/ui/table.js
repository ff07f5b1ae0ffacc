// A table. Cells are texts, numbers, or objects {text, href, tone, sub, hint, bar, action, mono}; rows are null until loaded.
export default {
  template: `
    <div class="qs-table-scroll">
      <table>
        <thead><tr>
          <th v-if="selectable" class="narrow"><input type="checkbox" :checked="all" @change="toggleAll" aria-label="Select all"></th>
          <th v-for="c in columns" :key="c.name" :class="[c.align || 'left', c.class]" :aria-sort="ariaSort(c)">
            <button v-if="c.sort" @click="$emit('sort', c.name)" :class="{on: sorted(c)}">{{ c.label }}<i>{{ arrow(c) }}</i></button>
            <span v-else>{{ c.label }}</span>
          </th>
        </tr></thead>
        <tbody>
          <tr v-for="(row, n) in rows ?? []" :key="row.id ?? n" :class="{picked: row.picked}">
            <td v-if="selectable" class="narrow"><input type="checkbox" :checked="chosen.has(row.id)" @change="toggle(row.id)" :aria-label="'Select ' + row.id"></td>
            <td v-for="c in columns" :key="c.name" :class="[c.align || 'left', c.class]" :data-label="c.label">
              <template v-for="(cell, m) in cells(row[c.name])" :key="m">
                <a v-if="cell.href" :href="cell.href" :title="cell.hint" :class="{mono: cell.mono}">{{ cell.text }}</a>
                <button v-else-if="cell.action" class="qs-link" :class="cell.tone" :title="cell.hint" @click="$emit('action', {name: cell.action, id: row.id})">{{ cell.text }}</button>
                <span v-else-if="cell.tone" class="qs-badge" :class="cell.tone" :title="cell.hint">{{ cell.text }}</span>
                <span v-else :class="{mono: cell.mono, faint: cell.faint}" :title="cell.hint">{{ cell.text }}</span>
                <small v-if="cell.sub">{{ cell.sub }}</small>
                <i v-if="cell.bar != null" class="qs-bar"><b :style="{width: Math.min(100, 100 * cell.bar) + '%'}"></b></i>
              </template>
            </td>
          </tr>
          <tr v-if="!rows?.length" class="empty"><td :colspan="columns.length + (selectable ? 1 : 0)">{{ rows ? empty : "Loading…" }}</td></tr>
        </tbody>
      </table>
    </div>`,
  props: { columns: Array, rows: Array, sort: String, empty: String, selectable: Boolean },
  data: () => ({ chosen: new Set() }),
  computed: {
    all() { return this.rows?.length > 0 && this.rows.every((row) => this.chosen.has(row.id)); },
  },
  methods: {
    cells(value) {
      const list = Array.isArray(value) ? value : [value];
      return list.map((cell) => (cell !== null && typeof cell === "object" ? cell : { text: cell ?? "–" }));
    },
    sorted(c) { return this.sort === c.name || this.sort === "-" + c.name; },
    arrow(c) { return this.sort === c.name ? "↑" : this.sort === "-" + c.name ? "↓" : ""; },
    ariaSort(c) { return this.sort === c.name ? "ascending" : this.sort === "-" + c.name ? "descending" : null; },
    toggle(id) {
      this.chosen.has(id) ? this.chosen.delete(id) : this.chosen.add(id);
      this.tell();
    },
    toggleAll() {
      const wanted = !this.all;
      for (const row of this.rows ?? []) wanted ? this.chosen.add(row.id) : this.chosen.delete(row.id);
      this.tell();
    },
    clear() { this.chosen = new Set(); this.tell(); },
    tell() { this.chosen = new Set(this.chosen); this.$emit("selected", [...this.chosen]); },
  },
};
