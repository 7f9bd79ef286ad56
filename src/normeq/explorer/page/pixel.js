// What a pixel is made of: its values below the picture, its filter in the panel.

import { plain } from "./numbers.js";
import { paintFilter } from "./painting.js";
import { ask } from "./requests.js";

const REST = 150; // milliseconds that the pointer rests before a filter is computed

const element = (id) => document.getElementById(id);

export class Pixel {
  constructor(about, viewer) {
    this.about = about;
    this.viewer = viewer;
    element("pixel-row").max = about.height - 1;
    element("pixel-column").max = about.width - 1;
    element("pixel-form").addEventListener("submit", (event) => {
      event.preventDefault();
      this.show(Number(element("pixel-row").value), Number(element("pixel-column").value));
    });
  }

  /** The pointer is at a pixel. */
  point(row, column) {
    this.read(row, column);
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.show(row, column), REST);
  }

  read(row, column) {
    this.at = [row, column];
    const { input, twin } = this.viewer.valuesAt(row, column);
    const text = (values) => (values ? values.map(plain).join(", ") : "…");
    const bold = document.createElement("b");
    bold.textContent = `${text(input)} → ${text(twin)}`;
    element("readout").replaceChildren(`row ${row}, column ${column}: `, bold);
  }

  async show(row, column) {
    this.control?.abort();
    this.control = new AbortController();
    this.read(row, column);
    const { setting, frame, channel } = this.viewer.state;
    const canvas = element("filter");
    try {
      const found = await ask("filter", { ...setting, frame, channel, row, column }, { signal: this.control.signal });
      paintFilter(canvas, found);
      const sum = found.sum.toFixed(4).replace("-", "−");
      const pixels = found.effective_pixels < 1e6 ? found.effective_pixels.toPrecision(3) : "–";
      canvas.setAttribute("aria-label",
        `Adaptive filter of row ${row}, column ${column}: weights sum to ${sum}, ${pixels} effective pixels`);
      element("filter-place").textContent = `${row}, ${column}`;
      element("filter-value").textContent = plain(found.value);
      element("filter-sum").textContent = sum;
      element("filter-pixels").textContent = pixels;
      element("pixel-row").value = row;
      element("pixel-column").value = column;
      this.viewer.mark(found);
    } catch (error) {
      if (error.name === "AbortError") return;
      canvas.getContext("2d").clearRect(0, 0, canvas.width, canvas.height);
      canvas.setAttribute("aria-label", error.message);
      element("filter-place").textContent = error.message;
      for (const name of ["value", "sum", "pixels"]) element(`filter-${name}`).textContent = "–";
      this.viewer.mark(null);
    }
  }

  /** The same pixel, after the setting has changed. */
  again() {
    if (this.at) this.show(...this.at);
  }
}
