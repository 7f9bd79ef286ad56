// The whole file, denoised in the background, then saved by the browser.

import { ask } from "./requests.js";

const POLL = 400; // milliseconds

const element = (id) => document.getElementById(id);

export class Download {
  constructor(viewer) {
    element("download").addEventListener("click", () => this.start(viewer.state.setting));
    element("download-cancel").addEventListener("click", () => ask("result", {}, { method: "DELETE" }));
  }

  async start({ model, sigma }) {
    this.show(true, "Denoising the whole file …");
    try {
      let status = await ask("result", { model, sigma }, { method: "POST" });
      while (status.stage === "running") {
        element("download-progress").value = status.share;
        await new Promise((resolve) => setTimeout(resolve, POLL));
        status = await ask("result");
      }
      if (status.stage === "done") this.save();
      const words = { done: "Done: ", failed: "Failed: ", cancelled: "" };
      this.show(false, `${words[status.stage] ?? ""}${status.said}`);
    } catch (error) {
      this.show(false, error.message);
    }
  }

  show(running, text) {
    element("download").disabled = running;
    element("download-running").hidden = !running;
    element("download-progress").value = 0;
    element("download-text").textContent = text;
  }

  save() {
    const link = document.createElement("a");
    link.href = "result/file";
    link.download = "";
    document.body.append(link);
    link.click();
    link.remove();
  }
}
