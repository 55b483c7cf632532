// A browser starts no workers for pages that are opened from the disk, and the search is one.
// There, this runs a worker's script in a hidden frame instead; elsewhere it does nothing.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      frame.title = "search";
      document.body.append(frame);
      const inner = frame.contentWindow;
      this.ready = new Promise((resolve) => {
        inner.postMessage = (data) => this.receive(data);
        inner.importScripts = (...urls) =>
          urls.reduce((before, each) => before.then(() => load(inner.document, each)), Promise.resolve());
        load(inner.document, url).then(resolve);
      });
      this.inner = inner;
    }

    receive(data) {
      const event = new MessageEvent("message", { data });
      this.dispatchEvent(event);
      this.onmessage?.(event);
    }

    postMessage(data) {
      this.ready.then(() => this.inner.dispatchEvent(new MessageEvent("message", { data: structuredClone(data) })));
    }
  };

  const load = (page, url) =>
    new Promise((resolve, reject) => {
      const script = page.createElement("script");
      script.onload = resolve;
      script.onerror = reject;
      script.src = url;
      page.body.append(script);
    });
}
