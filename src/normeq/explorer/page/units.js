// Other units: two sliders, and whether the twin follows.

import { plain, rounded, signed, small } from "./numbers.js";
import { ask } from "./requests.js";

const PAUSE = 180; // milliseconds without a move of a slider before anything is computed

export class Units {
  /** changed(gain, offset, ordinary): the user wants this. */
  constructor(about, viewer, changed) {
    this.about = about;
    this.viewer = viewer;
    this.changed = changed;
    this.gain = document.getElementById("gain");
    this.offset = document.getElementById("offset");
    this.ordinary = document.getElementById("ordinary");
    this.verdict = document.getElementById("follows");
    this.gain.min = Math.log10(about.gains[0]);
    this.gain.max = Math.log10(about.gains[1]);
    for (const slider of [this.gain, this.offset]) slider.addEventListener("input", () => this.moved());
    this.ordinary.addEventListener("change", () => this.moved(0));
    document.getElementById("reset-units").addEventListener("click", () => {
      this.gain.value = 0;
      this.offset.value = 0;
      this.moved(0);
    });
    this.label();
  }

  /** The gain and the offset that the sliders stand for. */
  get values() {
    const gain = rounded(10 ** Number(this.gain.value));
    const place = Number(this.offset.value);
    const [low, high] = this.about.range;
    const widths = (Math.abs(place) === 1 ? this.about.offset : (this.about.offset + 1) ** Math.abs(place) - 1) * Math.sign(place);
    const offset = 0.999 * gain * widths * (high - low); // rounding must not pass the limit
    return { gain, offset: place === 0 ? 0 : rounded(offset) };
  }

  label() {
    const { gain, offset } = this.values;
    const texts = { gain: `× ${plain(gain)}`, offset: signed(offset) };
    for (const [name, text] of Object.entries(texts)) {
      document.getElementById(`${name}-text`).textContent = text;
      this[name].setAttribute("aria-valuetext", text);
    }
  }

  moved(pause = PAUSE) {
    this.label();
    clearTimeout(this.timer);
    this.timer = setTimeout(() => {
      this.changed({ ...this.values, ordinary: this.ordinary.checked });
      this.measure();
    }, pause);
  }

  /** Measure in the middle of the view, and say what was found. */
  async measure() {
    this.control?.abort();
    this.control = new AbortController();
    const { setting, frame } = this.viewer.state;
    const unchanged = setting.gain === 1 && setting.offset === 0;
    document.getElementById("reset-units").hidden = unchanged;
    if (unchanged) {
      this.say("", "Move a slider to measure the error.");
      return;
    }
    this.say("", "Measuring …", "");
    const inside = (place, length) => Math.min(length - 1, Math.max(0, Math.floor(place)));
    const row = inside(this.viewer.y, this.about.height);
    const column = inside(this.viewer.x, this.about.width);
    try {
      const found = await ask("units", { ...setting, frame, row, column }, { signal: this.control.signal });
      const title = found.follows ? "The output follows" : "The output does not follow";
      const size = `largest error: ${small(found.worst)} spreads`;
      const alone = found.network_alone === null ? "" : `of the network alone: ${small(found.network_alone)}`;
      const limits = (pair) => `${plain(pair[0])} to ${plain(pair[1])}`;
      this.say(found.follows ? "good" : "bad", title, size, alone,
        `input: ${limits(found.changed_input)}`, `output: ${limits(found.changed_output)}`,
        found.follows ? "" : `expected: ${limits(found.expected_output)}`);
    } catch (error) {
      if (error.name !== "AbortError") this.say("bad", "Not measured", error.message);
    }
  }

  say(look, title, ...lines) {
    const bold = document.createElement("b");
    bold.textContent = title;
    const spans = lines.filter(Boolean).map((line) => {
      const span = document.createElement("span");
      span.textContent = line;
      return span;
    });
    this.verdict.className = `verdict ${look}`;
    this.verdict.replaceChildren(bold, ...spans);
  }
}
