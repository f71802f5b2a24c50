// Texts, symbols and small elements of the page. Log text becomes text nodes, never markup.
const SIGNS = {
  ok: ['✓', 'ok'], failed: ['✕', 'bad'], missing: ['!', 'warn'], pending: ['…', 'wait'], skipped: ['»', 'grey'],
  'legit-absent': ['–', 'grey'], unknown: ['?', 'grey'], 'not-observable': ['·', 'grey'],
};
const VERDICT_SIGNS = {
  complete: ['✓', 'ok'], failed: ['✕', 'bad'], incomplete: ['!', 'warn'], pending: ['…', 'wait'],
  superseded: ['»', 'grey'], 'no-op': ['–', 'grey'], unknown: ['?', 'grey'],
};
const STATE_TEXTS = {
  ok: 'a record shows it', failed: 'a record shows an error, and no later record a success',
  missing: 'the logs would show it, but do not', pending: 'not yet', skipped: 'superseded, rejected, or no client is subscribed',
  'legit-absent': 'not needed', unknown: 'no record, but a later stage proves it',
  'not-observable': 'not observable in these logs',
};
const BY_SEVERITY = ['failed', 'incomplete', 'pending', 'unknown', 'superseded', 'no-op', 'complete'];
const AGENT_STAGES = new Set([3, 4, 5]);

const $ = (id) => document.getElementById(id);

function el(tag, attributes, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (name === 'class') element.className = value;
    else if (name.startsWith('on')) element.addEventListener(name.slice(2), value);
    else if (value !== false && value !== undefined && value !== null) element.setAttribute(name, value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined && child !== ''));
  return element;
}

function svg(tag, attributes) {
  const element = document.createElementNS('http://www.w3.org/2000/svg', tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  return element;
}

const count = (number) => number.toLocaleString('en-US');
const plural = (number, word) => `${count(number)} ${word}${number === 1 ? '' : 's'}`;
const short = (id) => (id.length > 12 ? `${id.slice(0, 8)}…` : id);

// Times travel as tenths of milliseconds.
function span(tenths) {
  const ms = tenths / 10;
  if (ms < 10 && ms % 1) return `${ms.toFixed(1)} ms`;
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 120000) return `${(ms / 1000).toFixed(1)} s`;
  return ms < 7200000 ? `${Math.round(ms / 60000)} min` : `${(ms / 3600000).toFixed(1)} h`;
}

const moment = (tenths) => new Date(EPOCH + tenths / 10).toISOString();
const clock = (tenths) => moment(tenths).slice(11, 23);
const share = (part, whole) => {
  const percent = whole ? (100 * part) / whole : 0;
  return percent && percent < 0.1 ? '<0.1 %' : `${Number((percent > 99.9 && percent < 100 ? 99.9 : percent).toFixed(1))} %`;
};

function sign(of, word) {
  const [glyph, tone] = of[word];
  return el('span', { class: `sign t-${tone}`, 'aria-hidden': 'true' }, glyph);
}

function copyButton(text, what) {
  const button = el('button', { class: 'copy', type: 'button', 'aria-label': `Copy ${what}` }, 'copy');
  button.addEventListener('click', async () => {
    try {
      await navigator.clipboard.writeText(text);
      button.textContent = 'copied';
    } catch {
      button.textContent = 'select it and copy';
    }
    setTimeout(() => { button.textContent = 'copy'; }, 1500);
  });
  return button;
}
let EPOCH = 0;
