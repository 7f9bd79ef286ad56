// Tiles of the image and of its twin: those in view are asked for, recent ones are kept.

import { askTile } from "./requests.js";

const MOST_BYTES = 400e6;
const AT_ONCE = 2; // the server computes one at a time: one more is on its way

export class Tiles {
  constructor(changed, failed) {
    this.changed = changed;
    this.failed = failed;
    this.kept = new Map(); // in the order of their last use
    this.running = new Map();
    this.wanted = [];
    this.refused = new Set();
    this.bytes = 0;
  }

  /** Return a tile that is here, or undefined. */
  get(key) {
    const tile = this.kept.get(key);
    if (tile) {
      this.kept.delete(key);
      this.kept.set(key, tile);
    }
    return tile;
  }

  /** Say which tiles are in view, the most urgent first: a list of { key, words }. */
  want(list) {
    this.wanted = list.filter(({ key }) => !this.kept.has(key) && !this.refused.has(key));
    const still = new Set(this.wanted.map(({ key }) => key));
    for (const [key, control] of this.running) if (!still.has(key)) control.abort();
    this.next();
  }

  /** How many tiles in view are still missing. */
  get missing() {
    return this.wanted.filter(({ key }) => !this.kept.has(key)).length;
  }

  /** Try again what was refused before. */
  forgive() {
    this.refused.clear();
  }

  next() {
    for (const request of this.wanted) {
      if (this.running.size >= AT_ONCE) return;
      if (this.kept.has(request.key) || this.running.has(request.key)) continue;
      if (!this.refused.has(request.key)) this.fetch(request);
    }
  }

  async fetch({ key, words }) {
    const control = new AbortController();
    this.running.set(key, control);
    try {
      this.keep(key, await askTile(words, control.signal));
    } catch (error) {
      if (error.name !== "AbortError") {
        this.refused.add(key);
        this.wanted = this.wanted.filter((request) => request.key !== key);
        this.failed(error.message);
      }
    } finally {
      this.running.delete(key);
    }
    this.changed();
    this.next();
  }

  keep(key, tile) {
    this.kept.set(key, tile);
    this.bytes += tile.values.byteLength;
    for (const [oldest, other] of this.kept) {
      if (this.bytes <= MOST_BYTES || oldest === key) break;
      this.kept.delete(oldest);
      this.bytes -= other.values.byteLength;
    }
  }
}
