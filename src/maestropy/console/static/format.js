/** Times, durations and counts as people read them. */
import { t } from "./texts.js";

const numbers = new Intl.NumberFormat();

/** @param {number|null|undefined} value */
export const count = (value) => (value === null || value === undefined ? "–" : numbers.format(value));

/**
 * Seconds as the two largest units that matter.
 * @param {number} seconds
 */
export function duration(seconds) {
  if (seconds < 0) return "0 s";
  if (seconds < 1) return `${Math.round(seconds * 1000)} ms`;
  if (seconds < 60) return `${seconds < 10 ? seconds.toFixed(1) : Math.round(seconds)} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min`;
  const hours = Math.floor(minutes / 60);
  if (hours < 48) return `${hours} h ${minutes % 60} min`;
  return `${Math.floor(hours / 24)} d`;
}

/** @param {number|null|undefined} ms */
export const milliseconds = (ms) => (ms === null || ms === undefined ? "–" : duration(ms / 1000));

/** When an archive was collected, in milliseconds; 0 for a Maestro that runs. */
let collected = 0;

/**
 * Let ages count from the collection of an archive.
 * @param {string} time
 */
export const stopClock = (time) => {
  collected = Date.parse(time);
};

const present = () => collected || Date.now();

/**
 * How long something has lasted.
 * @param {string} time Its beginning.
 */
export const lasted = (time) => duration((present() - Date.parse(time)) / 1000);

/**
 * How long ago a time was.
 * @param {string|null|undefined} time
 */
export function age(time) {
  if (!time) return t("never");
  const seconds = (present() - Date.parse(time)) / 1000;
  return seconds < 2 ? t("now") : t("ago", { time: duration(seconds) });
}

const times = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" });
const dates = new Intl.DateTimeFormat(undefined, {
  year: "numeric", month: "2-digit", day: "2-digit", hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23",
});

/**
 * A time; one of today without its date.
 * @param {string|null|undefined} time
 */
export function clock(time) {
  if (!time) return "";
  const moment = new Date(time);
  return (new Date().toDateString() === moment.toDateString() ? times : dates).format(moment);
}

/**
 * A time to the millisecond.
 * @param {string|null|undefined} time
 */
export function exact(time) {
  if (!time) return "";
  const moment = new Date(time);
  return `${times.format(moment)}.${String(moment.getMilliseconds()).padStart(3, "0")}`;
}
