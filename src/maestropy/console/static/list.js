/** A list of any length: only the rows on screen exist, and they are read in windows. */
import { el, fill, whenReleased } from "./dom.js";

const ROW = 32;
const WINDOW = 100;
const KEPT = 12;
const SPARE = 8;
const AT_ONCE = 2;
const EARLY = 20;
/** @type {Record<string, number>} How many rows a key moves the cursor. */
const STEPS = { ArrowDown: 1, j: 1, ArrowUp: -1, k: -1, PageDown: 15, PageUp: -15, Home: -1e9, End: 1e9 };
let lists = 0;

/**
 * @typedef {object} Column
 * @property {string} key
 * @property {string} title
 * @property {string} [sort] The name of the order that its heading chooses.
 * @property {string} [style] A class: `minor` is left out on narrow screens, `right` aligns.
 * @property {(row: any) => Node|string} cell
 */

/**
 * Make a list.
 * @param {object} options
 * @param {string} options.label
 * @param {string} options.style The class with the widths of the columns.
 * @param {Column[]} options.columns
 * @param {(offset: number, limit: number) => Promise<{total: number, items: any[]}>} options.read
 * @param {(row: any) => string} options.href
 * @param {(row: any) => string} options.name What identifies a row.
 * @param {string} [options.sort]
 * @param {(sort: string) => void} [options.order]
 * @param {(total: number) => void} [options.counted]
 * @param {(error: Error) => void} options.failed
 */
export function makeList(options) {
  const id = `list${(lists += 1)}`;
  /** @type {Map<number, any[]>} */
  const windows = new Map();
  /** @type {Map<number, number>} The refresh in which a window was read. */
  const readIn = new Map();
  /** @type {Map<number, Promise<void>>} */
  const reading = new Map();
  let total = -1;
  let cursor = -1;
  let refreshes = 0;
  let query = 0;
  /** @type {string[]} Keys that were pressed before the rows were there. */
  let early = [];

  const rows = el("div.rows", { role: "rowgroup" });
  const space = el("div.space-of-rows", { role: "presentation" }, rows);
  const scroll = el("div.scroll", { role: "presentation" }, space);
  const head = el("div.row.head", { role: "row", "aria-rowindex": "1" });
  const grid = el(`div.grid.${options.style}`, {
    role: "grid", tabindex: "0", "aria-label": options.label, "aria-rowcount": "-1", keydown: onKey, "data-key": id,
  }, el("div", { role: "rowgroup" }, head), scroll);
  scroll.addEventListener("scroll", draw, { passive: true });
  const observer = new ResizeObserver(draw);
  observer.observe(scroll);
  drawHead();

  function drawHead() {
    fill(head, options.columns.map((column) => {
      const active = (options.sort ?? "").replace(/^-/, "") === column.sort;
      const direction = (options.sort ?? "").startsWith("-") ? "descending" : "ascending";
      const title = column.sort
        ? el("button", { type: "button", click: () => choose(column.sort ?? ""), "data-key": `${id}-${column.key}` }, column.title)
        : column.title;
      return el(`span.${column.style ?? "plain"}`, {
        role: "columnheader", "aria-sort": column.sort ? (active ? direction : "none") : undefined,
      }, title);
    }));
  }

  /** @param {string} sort */
  function choose(sort) {
    options.sort = options.sort === sort ? `-${sort}` : sort;
    drawHead();
    options.order?.(options.sort);
    scroll.scrollTop = 0;
    forget();
    refresh();
  }

  /** Read what is on screen again; rows stay until the new ones are there. */
  function refresh() {
    refreshes += 1;
    return Promise.all(visibleWindows().map(load));
  }

  /** Forget everything: the rows of another filter or order are others. */
  function forget() {
    query += 1;
    windows.clear();
    readIn.clear();
    reading.clear();
    total = -1;
    early = [];
  }

  /**
   * Read a window once at a time; a refresh meanwhile reads it once more, so that no answer is in vain.
   * @param {number} number
   * @returns {Promise<void>}
   */
  function load(number) {
    const known = reading.get(number);
    if (known) return known;
    // On a slow link the windows that were scrolled past would keep the one on screen waiting; `draw` asks for it again.
    if (reading.size >= AT_ONCE) return Promise.resolve();
    const [began, round] = [query, refreshes];
    const work = options.read(number * WINDOW, WINDOW).then((page) => {
      if (began !== query) return undefined;
      reading.delete(number);
      take(number, page);
      readIn.set(number, round);
      for (const key of early.splice(0)) press(key);
      draw();
      return undefined;
    }).catch((error) => {
      if (began !== query) return;
      reading.delete(number);
      options.failed(error);
    });
    reading.set(number, work);
    return work;
  }

  /**
   * @param {number} number
   * @param {{total: number, items: any[]}} page
   */
  function take(number, page) {
    windows.delete(number);
    windows.set(number, page.items);
    while (windows.size > KEPT) windows.delete(windows.keys().next().value ?? 0);
    if (page.total === total) return;
    total = page.total;
    options.counted?.(total);
    space.style.height = `${total * ROW}px`;
    grid.setAttribute("aria-rowcount", String(total + 1));
  }

  /** @returns {number[]} */
  function visibleWindows() {
    const [first, last] = visible();
    return [...new Set([Math.floor(first / WINDOW), Math.floor(Math.max(first, last - 1) / WINDOW)])];
  }

  /** @returns {[number, number]} */
  function visible() {
    const first = Math.max(0, Math.floor(scroll.scrollTop / ROW) - SPARE);
    const shown = Math.ceil((scroll.clientHeight || 600) / ROW) + 2 * SPARE;
    return [first, total < 0 ? first + shown : Math.min(total, first + shown)];
  }

  function draw() {
    whenReleased(rows, drawNow);
  }

  function drawNow() {
    const [first, last] = visible();
    if (total > 0) for (const number of visibleWindows()) if (readIn.get(number) !== refreshes) load(number);
    const drawn = [];
    for (let index = first; index < last; index += 1) {
      const number = Math.floor(index / WINDOW);
      const row = windows.get(number)?.[index - number * WINDOW];
      drawn.push(row ? rowOf(row, index) : el("div.row.waiting", { role: "row", "aria-rowindex": index + 2 },
        el("span.plain", { role: "gridcell" }, total < 0 ? "" : "…")));
    }
    rows.style.transform = `translateY(${first * ROW}px)`;
    const active = document.activeElement;
    const focused = active?.closest?.("[data-row]")?.getAttribute("data-row");
    const same = active?.matches("button") ? "button" : "a";
    fill(rows, drawn);
    if (focused) {
      const again = [...rows.querySelectorAll("[data-row]")].find((one) => one.getAttribute("data-row") === focused);
      /** @type {HTMLElement|null|undefined} */ (again?.querySelector(same))?.focus({ preventScroll: true });
    }
    if (cursor >= 0) grid.setAttribute("aria-activedescendant", `${id}-${cursor}`);
  }

  /**
   * @param {any} row
   * @param {number} index
   */
  function rowOf(row, index) {
    const element = el("div.row", {
      role: "row", id: `${id}-${index}`, "aria-rowindex": index + 2, "data-row": options.name(row),
      "aria-selected": index === cursor ? "true" : undefined,
      click: (/** @type {MouseEvent} */ event) => {
        if (!(/** @type {Element} */ (event.target)).closest("a, button")) location.hash = options.href(row);
      },
    }, options.columns.map((column) => el(`span.${column.style ?? "plain"}`, { role: "gridcell" }, column.cell(row))));
    if (index === cursor) element.classList.add("cursor");
    return element;
  }

  /** @param {KeyboardEvent} event */
  function onKey(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const moves = event.key in STEPS;
    if (!moves && !(event.key === "Enter" && event.target === grid)) return;
    // Who types faster than the rows are read means the rows that come.
    if (total < 0) early = [...early, event.key].slice(-EARLY);
    else if (!press(event.key)) return;
    event.preventDefault();
    if (moves) event.stopPropagation();
  }

  /**
   * Move the cursor or open its row; return whether the key did something.
   * @param {string} key
   */
  function press(key) {
    if (key === "Enter") {
      if (cursor < 0) return false;
      const row = windows.get(Math.floor(cursor / WINDOW))?.[cursor % WINDOW];
      if (row) location.hash = options.href(row);
      return true;
    }
    if (total <= 0) return false;
    const step = STEPS[key];
    cursor = Math.min(total - 1, Math.max(0, (cursor < 0 && step > 0 && step < 2 ? -1 : cursor) + step));
    const top = cursor * ROW;
    if (top < scroll.scrollTop) scroll.scrollTop = top;
    if (top + ROW > scroll.scrollTop + scroll.clientHeight) scroll.scrollTop = top + ROW - scroll.clientHeight;
    draw();
    return true;
  }

  return {
    element: grid,
    refresh,
    /** Begin again at the top, for another filter. */
    restart() {
      scroll.scrollTop = 0;
      cursor = -1;
      forget();
      return refresh();
    },
    /** Move the cursor from anywhere on the page. @param {KeyboardEvent} event */
    key: onKey,
    end() {
      observer.disconnect();
      windows.clear();
    },
  };
}
