// Words, signs and small parts of the page. Everything from a log becomes text, never markup.
const SIGNS = {
  ok: ['✓', 'ok'], failed: ['✕', 'bad'], missing: ['!', 'warn'], pending: ['…', 'wait'], skipped: ['»', 'grey'],
  'legit-absent': ['–', 'grey'], unknown: ['?', 'grey'], 'not-observable': ['·', 'grey'],
};
const VERDICT_SIGNS = {
  complete: ['✓', 'ok'], failed: ['✕', 'bad'], incomplete: ['!', 'warn'], pending: ['…', 'wait'],
  superseded: ['»', 'grey'], 'no-op': ['–', 'grey'], unknown: ['?', 'grey'],
};
const STATE_WORDS = {
  ok: 'a record shows it', failed: 'a record shows an error that nothing made good',
  missing: 'the logs would show it, and do not', pending: 'not yet', skipped: 'overtaken, refused, or nobody listens',
  'legit-absent': 'need not come', unknown: 'no record, but a later stage proves it',
  'not-observable': 'these logs cannot show it',
};
const BY_CONCERN = ['failed', 'incomplete', 'pending', 'unknown', 'superseded', 'no-op', 'complete'];
const AGENT_STAGES = new Set([3, 4, 5]);

const $ = (id) => document.getElementById(id);

function el(tag, attributes, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (name === 'class') made.className = value;
    else if (name.startsWith('on')) made.addEventListener(name.slice(2), value);
    else if (value !== false && value !== undefined && value !== null) made.setAttribute(name, value);
  }
  made.append(...children.filter((child) => child !== null && child !== undefined && child !== ''));
  return made;
}

function svg(tag, attributes) {
  const made = document.createElementNS('http://www.w3.org/2000/svg', tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  return made;
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
