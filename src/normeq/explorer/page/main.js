// The page: what the server says about the image, and the parts that show it.

import { Download } from "./download.js";
import { plain } from "./numbers.js";
import { Pixel } from "./pixel.js";
import { ask } from "./requests.js";
import { Units } from "./units.js";
import { Viewer } from "./viewer.js";

const element = (id) => document.getElementById(id);

/** What the reader has closed is not said again: every tile in view may fail for the same reason. */
let closedSentence = null;

function complain(sentence) {
  if (sentence === closedSentence) return;
  element("message-text").textContent = sentence;
  element("message").hidden = false;
}

function slider(name, length, moved) {
  const label = document.createElement("label");
  const text = document.createElement("span");
  const input = document.createElement("input");
  Object.assign(input, { type: "range", min: 0, max: length - 1, step: 1, value: 0 });
  input.dataset.axis = name;
  const show = () => {
    text.textContent = `${name} ${Number(input.value) + 1} of ${length}`;
    input.setAttribute("aria-valuetext", text.textContent);
  };
  input.addEventListener("input", () => {
    show();
    moved();
  });
  show();
  label.append(text, input);
  return { label, input, length };
}

const AXES = { T: "Time", Z: "Depth", C: "Channel", Q: "Plane", I: "Image" };

class Page {
  constructor(about) {
    this.about = about;
    element("page").hidden = false;
    this.viewer = new Viewer(element("viewer"), about, {
      changed: () => this.refreshed(),
      failed: complain,
      pointed: (row, column) => this.pixel.point(row, column),
    });
    this.pixel = new Pixel(about, this.viewer);
    this.units = new Units(about, this.viewer, (change) => this.changeUnits(change));
    this.download = new Download(this.viewer);
    this.describe();
    this.offerModels();
    this.addPlanes();
    this.listen();
    this.findNoise();
    this.units.measure();
    this.refreshed();
  }

  describe() {
    const { title, height, width, channels, axes, kind } = this.about;
    document.title = `${title} – normeq explore`;
    element("title").textContent = title;
    const stack = axes.map(([letter, length]) => `${length} ${letter} × `).join("");
    const colour = channels > 1 ? ` × ${channels} channels` : "";
    element("facts").textContent = `${stack}${height} × ${width}${colour}, ${kind}`;
  }

  offerModels() {
    for (const { name, label } of this.about.models) element("model").add(new Option(label, name));
    element("model").value = this.about.model;
  }

  addPlanes() {
    const { axes, channels } = this.about;
    this.planeSliders = axes.filter(([, length]) => length > 1).map(([letter, length]) =>
      slider(AXES[letter] ?? letter, length, () => this.moveToPlane()));
    element("planes").append(...this.planeSliders.map(({ label }) => label));
    if (channels !== 1 && channels !== 3) {
      const channel = slider("Channel", channels, () => this.viewer.set({ channel: Number(channel.input.value) }));
      element("planes").append(channel.label);
    }
  }

  listen() {
    for (const radio of document.getElementsByName("mode")) {
      radio.addEventListener("change", () => this.viewer.set({ mode: radio.value }));
    }
    element("zoom-in").addEventListener("click", () => this.viewer.zoom(1.5));
    element("zoom-out").addEventListener("click", () => this.viewer.zoom(1 / 1.5));
    element("zoom-fit").addEventListener("click", () => this.viewer.fit());
    element("zoom-one").addEventListener("click", () => this.viewer.lookAt(this.viewer.x, this.viewer.y, 1));
    element("model").addEventListener("change", () => {
      element("ordinary").checked = element("model").value === this.about.ordinary;
      this.changeSetting({ model: element("model").value });
    });
    element("sigma").addEventListener("change", () => {
      const text = element("sigma").value.trim();
      this.changeSetting({ sigma: text === "" ? null : Number(text) });
    });
    element("message-close").addEventListener("click", () => {
      closedSentence = element("message-text").textContent;
      element("message").hidden = true;
    });
  }

  async moveToPlane() {
    const frame = this.planeSliders.reduce((sum, { input, length }) => sum * length + Number(input.value), 0);
    this.latest = frame;
    try {
      const { range } = await ask("frame", { frame });
      if (this.latest !== frame) return;
      this.viewer.set({ frame, range });
      this.pixel.again();
    } catch (error) {
      complain(error.message);
    }
  }

  changeUnits({ gain, offset, ordinary }) {
    const { model } = this.viewer.state.setting;
    const isOrdinary = model === this.about.ordinary;
    if (!isOrdinary) this.ownModel = model;
    const chosen = ordinary ? this.about.ordinary : isOrdinary ? this.ownModel ?? this.about.model : model;
    element("model").value = chosen;
    this.changeSetting({ gain, offset, model: chosen }, false);
  }

  changeSetting(changes, measure = true) {
    closedSentence = null;
    element("message").hidden = true;
    const before = this.viewer.state.setting;
    const setting = { ...before, ...changes };
    this.viewer.tiles.forgive();
    this.viewer.set({ setting });
    if (setting.model !== before.model || setting.sigma !== before.sigma) this.findNoise();
    if (measure) this.units.measure();
    this.pixel.again();
  }

  async findNoise() {
    const { setting } = this.viewer.state;
    const asked = { model: setting.model, sigma: setting.sigma };
    this.noiseAsked = JSON.stringify(asked);
    element("noise").textContent = "Looking at the noise …";
    try {
      const { lines, denoiser } = await ask("noise", asked);
      if (this.noiseAsked !== JSON.stringify(asked)) return;
      const noise = lines.join("; ").replace(/^noise/, "Noise");
      const found = noise ? `${noise}.` : "The model is told nothing about the noise.";
      const [low, high] = this.about.ordinary_range;
      const told = setting.model === this.about.ordinary
        ? ` It was told that ${plain(low)} is black and ${plain(high)} is white.` : "";
      element("noise").textContent = `${found} Denoised by ${denoiser}.${told}`;
    } catch (error) {
      element("noise").textContent = error.message;
    }
  }

  /** After each drawing: what the page says around the picture. */
  refreshed() {
    if (!this.viewer) return;
    const { viewer } = this;
    const { mode, range, setting } = viewer.state;
    const missing = viewer.tiles.missing;
    element("zoom-level").textContent = `${plain(100 * viewer.scale)} %`;
    element("tag-left").hidden = mode === "twin";
    element("tag-left").textContent = mode === "removed" ? "removed: input − denoised" : "input";
    element("tag-right").hidden = mode === "input" || mode === "removed";
    element("divider").hidden = mode !== "compare";
    const bounds = range.map((value) => plain(setting.gain * value + setting.offset));
    element("shown-range").textContent = mode === "removed"
      ? `grey is 0, black and white ± ${plain(setting.gain * viewer.removedReach)}`
      : `black ${bounds[0]}, white ${bounds[1]}`;
    const working = element("working");
    working.hidden = missing === 0;
    const share = viewer.total ? 1 - missing / viewer.total : 1;
    working.firstElementChild.style.width = `${100 * share}%`;
    working.setAttribute("aria-valuenow", Math.round(100 * share));
    this.sayStatus(missing);
  }

  /** Screen readers hear when work begins and ends, not every tile. */
  sayStatus(missing) {
    const refused = this.viewer.tiles.refused.size > 0;
    const megapixels = this.viewer.total * (this.about.tile * 2 ** this.viewer.level) ** 2 / 1e6;
    const text = refused ? "Some tiles could not be computed."
      : missing === 0 ? "Everything in view is computed."
        : megapixels > 16 ? "Computing what is in view; zoom in to see it sooner."
          : "Computing what is in view …";
    if (element("status").textContent !== text) element("status").textContent = text;
    if (this.pixel?.at && missing === 0) this.pixel.read(...this.pixel.at);
  }
}

try {
  new Page(await ask("about"));
} catch (error) {
  element("failure-text").textContent = error.message;
  element("failure").hidden = false;
  element("page").hidden = true;
}
