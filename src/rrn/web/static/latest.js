// Runs one request at a time: a newer request aborts the older one.

export class Latest {
  #controller = null;

  // The result of `work`; null if it was aborted.
  async run(work) {
    this.drop();
    const controller = new AbortController();
    this.#controller = controller;
    try {
      const result = await work(controller.signal);
      return controller.signal.aborted ? null : result;
    } catch (error) {
      if (controller.signal.aborted) return null;
      throw error;
    }
  }

  drop() {
    this.#controller?.abort();
  }
}
