// The picture: input and twin under one divider, moved and zoomed together.

import { paint } from "./painting.js";
import { Tiles } from "./tiles.js";

const LARGEST = 32; // screen pixels for one of the image
const EAGER_PIXELS = 2e6; // a larger image starts at 1:1 in its middle
const REMOVED_SPREADS = 3; // what was removed is drawn from minus to plus this

export class Viewer {
  /** events: changed(), failed(sentence), pointed(row, column). */
  constructor(element, about, events) {
    this.element = element;
    this.canvas = element.querySelector("canvas");
    this.divider = element.querySelector("#divider");
    this.about = about;
    this.events = events;
    this.tiles = new Tiles(() => this.draw(), events.failed);
    this.state = {
      mode: "compare", split: 0.5, frame: 0, channel: 0, range: about.range,
      setting: { model: about.model, sigma: null, gain: 1, offset: 0 },
    };
    this.painted = new Map(); // by place and kind: the last picture of it, whatever its setting
    this.removedReach = 0;
    this.square = null;
    this.listen();
    new ResizeObserver(() => this.resize()).observe(element);
    this.resize();
    if (about.width * about.height <= EAGER_PIXELS) this.fit();
    else this.lookAt(about.width / 2, about.height / 2, 1);
  }

  // Where we look ------------------------------------------------------------------------------

  resize() {
    const ratio = window.devicePixelRatio || 1;
    this.wide = this.element.clientWidth;
    this.tall = this.element.clientHeight;
    this.canvas.width = Math.max(1, Math.round(this.wide * ratio));
    this.canvas.height = Math.max(1, Math.round(this.tall * ratio));
    this.ratio = ratio;
    if (this.fitted) this.fit();
    else this.draw();
  }

  get smallest() {
    return Math.min(this.wide / this.about.width, this.tall / this.about.height, 1) / 2;
  }

  lookAt(x, y, scale) {
    this.fitted = false;
    this.scale = Math.min(LARGEST, Math.max(this.smallest, scale));
    this.x = Math.min(this.about.width, Math.max(0, x));
    this.y = Math.min(this.about.height, Math.max(0, y));
    this.draw();
  }

  fit() {
    const scale = Math.min(this.wide / this.about.width, this.tall / this.about.height);
    this.lookAt(this.about.width / 2, this.about.height / 2, Math.min(scale, 8));
    this.fitted = true;
  }

  /** Zoom by a factor; the image point under (left, top) stays where it is. */
  zoom(factor, left = this.wide / 2, top = this.tall / 2) {
    const [x, y] = this.toImage(left, top);
    const scale = Math.min(LARGEST, Math.max(this.smallest, this.scale * factor));
    this.lookAt(x - (left - this.wide / 2) / scale, y - (top - this.tall / 2) / scale, scale);
  }

  move(right, down) {
    this.lookAt(this.x + right / this.scale, this.y + down / this.scale, this.scale);
  }

  toImage(left, top) {
    return [this.x + (left - this.wide / 2) / this.scale, this.y + (top - this.tall / 2) / this.scale];
  }

  toScreen(x, y) {
    return [(x - this.x) * this.scale + this.wide / 2, (y - this.y) * this.scale + this.tall / 2];
  }

  /** The same on a whole pixel of the screen, so that tiles meet without a seam. */
  toGrid(x, y) {
    return this.toScreen(x, y).map((place) => Math.round(place * this.ratio) / this.ratio);
  }

  set(changes) {
    const before = this.state;
    this.state = { ...before, ...changes };
    if (before.frame !== this.state.frame || before.channel !== this.state.channel) this.painted.clear();
    if (before.setting.model !== this.state.setting.model || before.frame !== this.state.frame) {
      this.removedReach = 0;
    }
    this.draw();
  }

  /** Mark the pixels that a filter covers. */
  mark(found) {
    this.square = found;
    this.draw();
  }

  // Tiles in view ------------------------------------------------------------------------------

  get level() {
    const shrink = 1 / (this.scale * this.ratio);
    return Math.min(this.about.top_level, Math.max(0, Math.floor(Math.log2(shrink) + 0.01)));
  }

  /** Tiles in view, those in the middle first. */
  places() {
    const side = this.about.tile * 2 ** this.level;
    const [left, top] = this.toImage(0, 0);
    const [right, bottom] = this.toImage(this.wide, this.tall);
    const last = (length) => Math.ceil(length / side) - 1;
    const found = [];
    for (let row = Math.max(0, Math.floor(top / side)); row <= Math.min(last(this.about.height), Math.floor(bottom / side)); row += 1) {
      for (let column = Math.max(0, Math.floor(left / side)); column <= Math.min(last(this.about.width), Math.floor(right / side)); column += 1) {
        found.push({ level: this.level, row, column });
      }
    }
    const far = ({ row, column }) => Math.hypot((row + 0.5) * side - this.y, (column + 0.5) * side - this.x);
    return found.sort((a, b) => far(a) - far(b));
  }

  request(of, place) {
    const words = { of, frame: this.state.frame, ...place };
    if (of === "twin") Object.assign(words, this.state.setting);
    return { key: JSON.stringify(words), words };
  }

  get kinds() {
    return { compare: ["input", "twin"], input: ["input"], twin: ["twin", "input"], removed: ["input", "twin"] }[this.state.mode];
  }

  // Pictures -----------------------------------------------------------------------------------

  get shownChannels() {
    return this.about.channels === 3 ? [0, 1, 2] : [this.state.channel];
  }

  /** The picture of a tile; an older one while it is being computed; undefined if there is none. */
  picture(kind, place) {
    const name = `${kind} ${place.level} ${place.row} ${place.column}`;
    const input = this.request("input", place).key;
    const twin = this.request("twin", place).key;
    const look = { input, twin, removed: `${twin} ${this.removedReach}` }[kind];
    const sign = `${look} ${this.state.range} ${this.state.channel}`;
    const old = this.painted.get(name);
    if (old && old.sign === sign) return { ...old, fresh: true };
    const tiles = { input: [input], twin: [twin], removed: [input, twin] }[kind].map((key) => this.tiles.get(key));
    if (tiles.includes(undefined)) return old && { ...old, fresh: false };
    const made = { sign, canvas: this.paintKind(kind, tiles) };
    this.painted.set(name, made);
    if (this.painted.size > 400) this.painted.delete(this.painted.keys().next().value);
    return { ...made, fresh: true };
  }

  /** Everything is drawn in the image's own units: a twin that follows does not change. */
  paintKind(kind, tiles) {
    const [low, high] = this.state.range;
    const { gain, offset } = this.state.setting;
    const [first, second] = tiles.map((tile) => tile.values);
    if (kind === "input") return paint(tiles[0], this.shownChannels, (i) => (first[i] - low) / (high - low));
    if (kind === "twin") {
      return paint(tiles[0], this.shownChannels, (i) => ((first[i] - offset) / gain - low) / (high - low));
    }
    const removed = (i) => first[i] - (second[i] - offset) / gain;
    if (!this.removedReach) this.removedReach = REMOVED_SPREADS * spread(removed, first.length);
    const reach = this.removedReach || 1;
    return paint(tiles[0], this.shownChannels, (i) => removed(i) / (2 * reach) + 0.5);
  }

  draw() {
    if (this.scale === undefined) return;
    const context = this.canvas.getContext("2d");
    context.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    context.clearRect(0, 0, this.wide, this.tall);
    context.imageSmoothingEnabled = this.scale < 1;
    const places = this.places();
    const kinds = this.kinds;
    this.tiles.want(kinds.flatMap((kind) => places.map((place) => this.request(kind, place))));
    const split = this.state.split * this.wide;
    if (this.state.mode === "compare") {
      this.drawSide(context, "input", places, 0, split);
      this.drawSide(context, "twin", places, split, this.wide);
    } else {
      this.drawSide(context, this.state.mode, places, 0, this.wide);
    }
    this.drawSquare(context);
    this.total = kinds.length * places.length;
    this.divider.style.left = `${100 * this.state.split}%`;
    this.divider.setAttribute("aria-valuenow", Math.round(100 * this.state.split));
    this.events.changed();
  }

  drawSide(context, kind, places, from, to) {
    context.save();
    context.beginPath();
    context.rect(from, 0, to - from, this.tall);
    context.clip();
    for (const place of places) {
      const side = this.about.tile * 2 ** place.level;
      const [left, top] = this.toGrid(place.column * side, place.row * side);
      const [right, bottom] = this.toGrid(
        Math.min((place.column + 1) * side, this.about.width), Math.min((place.row + 1) * side, this.about.height));
      const [wide, tall] = [right - left, bottom - top];
      const found = this.picture(kind, place) || this.picture("input", place);
      if (found) context.drawImage(found.canvas, left, top, wide, tall);
      const waits = kind !== "input" && !(this.picture(kind, place) || {}).fresh;
      if (waits || !found) {
        context.fillStyle = found ? "rgba(227, 232, 238, 0.55)" : "#d3dae2";
        context.fillRect(left, top, wide, tall);
      }
    }
    context.restore();
  }

  drawSquare(context) {
    if (!this.square) return;
    const { rows, columns, row, column } = this.square;
    const box = (from, to, color) => {
      const [left, top] = this.toScreen(...from);
      const [right, bottom] = this.toScreen(...to);
      context.lineWidth = 3;
      context.strokeStyle = "rgba(255, 255, 255, 0.85)";
      context.strokeRect(left, top, right - left, bottom - top);
      context.lineWidth = 1.5;
      context.strokeStyle = color;
      context.strokeRect(left, top, right - left, bottom - top);
    };
    box([columns[0], rows[0]], [columns[1], rows[1]], "#0b57b8");
    box([column, row], [column + 1, row + 1], "#0b7a2b");
  }

  /** Values of a pixel in the units of the setting: of the input and of its twin, where they are known. */
  valuesAt(row, column) {
    const { gain, offset } = this.state.setting;
    const place = { level: 0, row: Math.floor(row / this.about.tile), column: Math.floor(column / this.about.tile) };
    const values = (of) => {
      const tile = this.tiles.get(this.request(of, place).key);
      if (!tile) return null;
      const at = ((row % this.about.tile) * tile.columns + (column % this.about.tile)) * tile.channels;
      return this.shownChannels.map((channel) => tile.values[at + channel]);
    };
    const input = values("input");
    return { input: input && input.map((value) => gain * value + offset), twin: values("twin") };
  }

  // Hands --------------------------------------------------------------------------------------

  listen() {
    const place = (event) => {
      const box = this.element.getBoundingClientRect();
      return [event.clientX - box.left, event.clientY - box.top];
    };
    let drag = null;
    this.element.addEventListener("pointerdown", (event) => {
      if (this.divider.contains(event.target)) return;
      drag = place(event);
      this.element.setPointerCapture(event.pointerId);
    });
    this.element.addEventListener("pointermove", (event) => {
      const now = place(event);
      if (drag) {
        this.element.classList.add("dragging");
        this.move(drag[0] - now[0], drag[1] - now[1]);
        drag = now;
      } else if (!this.divider.contains(event.target)) {
        this.point(...now);
      }
    });
    const drop = () => {
      drag = null;
      this.element.classList.remove("dragging");
    };
    this.element.addEventListener("pointerup", drop);
    this.element.addEventListener("pointercancel", drop);
    this.element.addEventListener("wheel", (event) => {
      event.preventDefault();
      this.zoom(Math.exp(-Math.sign(event.deltaY) * Math.min(60, Math.abs(event.deltaY)) / 200), ...place(event));
    }, { passive: false });
    this.element.addEventListener("keydown", (event) => this.key(event));
    this.listenToDivider(place);
  }

  point(left, top) {
    const [x, y] = this.toImage(left, top).map(Math.floor);
    if (x >= 0 && y >= 0 && x < this.about.width && y < this.about.height) this.events.pointed(y, x);
  }

  key(event) {
    if (event.target === this.divider || event.ctrlKey || event.metaKey || event.altKey) return;
    const step = event.shiftKey ? 200 : 40;
    const actions = {
      ArrowLeft: () => this.move(-step, 0), ArrowRight: () => this.move(step, 0),
      ArrowUp: () => this.move(0, -step), ArrowDown: () => this.move(0, step),
      "+": () => this.zoom(1.25), "=": () => this.zoom(1.25), "-": () => this.zoom(0.8),
      0: () => this.fit(), 1: () => this.lookAt(this.x, this.y, 1),
      Enter: () => this.point(this.wide / 2, this.tall / 2),
    };
    if (!actions[event.key]) return;
    event.preventDefault();
    actions[event.key]();
  }

  listenToDivider(place) {
    const set = (split) => this.set({ split: Math.min(1, Math.max(0, split)) });
    this.divider.addEventListener("pointerdown", (event) => {
      this.divider.setPointerCapture(event.pointerId);
      this.held = true;
    });
    this.divider.addEventListener("pointermove", (event) => this.held && set(place(event)[0] / this.wide));
    this.divider.addEventListener("pointerup", () => { this.held = false; });
    this.divider.addEventListener("keydown", (event) => {
      const step = event.shiftKey ? 0.1 : 0.02;
      const split = {
        ArrowLeft: this.state.split - step, ArrowRight: this.state.split + step, Home: 0, End: 1,
      }[event.key];
      if (split === undefined) return;
      event.preventDefault();
      set(split);
    });
  }
}

function spread(value, count) {
  const step = Math.max(1, Math.floor(count / 20000));
  let sum = 0;
  let known = 0;
  for (let i = 0; i < count; i += step) {
    const each = value(i);
    if (Number.isFinite(each)) {
      sum += each * each;
      known += 1;
    }
  }
  return known ? Math.sqrt(sum / known) : 0;
}
