/** Talk to the console's own server: JSON pages, the session, and the stream of changes. */

/** An answer that is no page: its status, and why. */
export class ApiError extends Error {
  /**
   * @param {number} status 0 if there was no answer.
   * @param {string} reason
   */
  constructor(status, reason) {
    super(reason);
    this.status = status;
  }
}

/**
 * Read a page.
 * @param {string} path Below `api/`.
 * @param {Record<string, string|number>} [query]
 * @param {AbortSignal} [signal]
 * @returns {Promise<any>}
 */
export async function read(path, query = {}, signal = undefined) {
  const search = new URLSearchParams(Object.entries(query).map(([key, value]) => [key, String(value)]));
  const address = `api/${path}${search.size ? `?${search}` : ""}`;
  return answer(await fetched(address, { signal, headers: { Accept: "application/json" } }));
}

/**
 * Sign in or out.
 * @param {"POST"|"DELETE"} method
 * @param {object} [body]
 * @param {string} [path] Below `api/`.
 * @returns {Promise<any>}
 */
export async function session(method, body = undefined, path = "session") {
  const headers = { "X-Maestro-Console": "1", "Content-Type": "application/json" };
  return answer(await fetched(`api/${path}`, { method, headers, body: body && JSON.stringify(body) }));
}

/**
 * Ask for something that may change something; other sites cannot send the header.
 * @param {string} path Below `api/`.
 * @param {object} body
 * @returns {Promise<any>}
 */
export async function post(path, body) {
  const headers = { "X-Maestro-Console": "1", "Content-Type": "application/json" };
  return answer(await fetched(`api/${path}`, { method: "POST", headers, body: JSON.stringify(body) }));
}

/**
 * @param {string} address
 * @param {RequestInit} options
 */
async function fetched(address, options) {
  try {
    return await fetch(address, { credentials: "same-origin", ...options });
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    throw new ApiError(0, "the server does not answer");
  }
}

/** @param {Response} response */
async function answer(response) {
  let body;
  try {
    body = await response.json();
  } catch {
    throw new ApiError(response.status, `the answer ${response.status} is not JSON`);
  }
  if (!response.ok) throw new ApiError(response.status, body.error ?? `status ${response.status}`);
  return body;
}

/**
 * Listen to changes; when there is no stream, ask every ten seconds.
 * @param {{change: (state: any) => void, lost: () => void, polling: () => void, expired: () => void}} on
 * @returns {() => void} Ends it.
 */
export function listen(on) {
  /** @type {EventSource|null} */
  let stream = null;
  let timer = 0;
  let failures = 0;
  let ended = false;

  const poll = async () => {
    if (ended) return;
    try {
      const fleet = await read("fleet");
      on.polling();
      on.change({ generation: fleet.generation, problem: fleet.source.problem, source: fleet.source });
    } catch (error) {
      if (error instanceof ApiError && error.status === 401) return on.expired();
      on.lost();
    }
    timer = window.setTimeout(open, 10_000);
  };

  const open = () => {
    if (ended) return;
    stream = new EventSource("api/stream");
    stream.onmessage = (event) => {
      failures = 0;
      on.change(JSON.parse(event.data));
    };
    stream.addEventListener("expired", () => on.expired());
    stream.onerror = () => {
      failures += 1;
      // The browser itself tries again after a lost connection, but not after a refusal.
      if (stream?.readyState === EventSource.CLOSED) {
        stream = null;
        timer = window.setTimeout(failures > 1 ? poll : open, 2_000);
      }
      on.lost();
    };
  };

  open();
  return () => {
    ended = true;
    window.clearTimeout(timer);
    stream?.close();
  };
}
