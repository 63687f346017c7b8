// Runs one request at a time: a newer one drops the older.

export class Latest {
  #controller = null;

  // What `work` returns; null if a newer call came in between.
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
