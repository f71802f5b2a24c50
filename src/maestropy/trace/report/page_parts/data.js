// The requests as columns, the filters, and the sort order.
let model, columns, total = 0;
let visible = [];
const nth = [];
const order = { by: 'verdict', down: false };
const filters = { words: [], verdicts: new Set(), action: '', consumer: '', code: '', slower: 0, stage: 0, state: '' };
let severityRank = [];
let searchTexts = null;

async function load() {
  const packed = Uint8Array.from(atob($('data').textContent), (char) => char.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream('gzip'));
  model = await new Response(stream).json();
  columns = model.columns;
  total = (columns.resource || []).length;
  EPOCH = model.epoch ? Date.parse(model.epoch) : 0;
  severityRank = model.verdicts.map((verdict) => BY_SEVERITY.indexOf(verdict));
  const seen = new Map();
  for (let row = 0; row < total; row += 1) {
    const before = seen.get(columns.resource[row]) || 0;
    nth.push(before);
    seen.set(columns.resource[row], before + 1);
  }
  $('data').remove();
}

const verdictOf = (row) => model.verdicts[columns.verdict[row]];
const stateOf = (row, stage) => model.states[columns.states[row].charCodeAt(stage - 1) - 48];
const textOf = (name, row) => model.texts[columns[name][row]];
const requestOf = (row) => `${textOf('action', row)}${columns.version[row] > 0 ? ` v${columns.version[row]}` : ''}`;
const findingsOf = (row) => model.findings[row] || [];
const idOf = (row) => `${columns.resource[row]}~${nth[row]}`;

function rowOf(id) {
  const [resource, place] = id.split('~');
  const rows = [];
  for (let row = 0; row < total; row += 1) if (columns.resource[row] === resource) rows.push(row);
  return place === undefined ? rows[rows.length - 1] : rows[Number(place)];
}

function recordsOf(row) {
  const flat = columns.records[row];
  const records = [];
  for (let at = 0; at < flat.length; at += 5) {
    const [pod, file] = model.writers[flat[at + 2]];
    records.push({
      at: flat[at], stage: flat[at + 1], pod, file, line: flat[at + 3], description: model.texts[flat[at + 4]],
      written: model.lines[`${flat[at + 2]}:${flat[at + 3]}`] || '',
    });
  }
  return records;
}

// The time between each stage that was seen and the one seen before it.
function hopsOf(row) {
  const times = columns.times[row];
  let before = null;
  return times.map((time) => {
    if (time === null) return null;
    const hop = before === null ? null : Math.max(0, time - before);
    before = time;
    return hop;
  });
}

function searchText(row) {
  if (!searchTexts) searchTexts = new Array(total);
  searchTexts[row] ||= [columns.work[row], columns.resource[row], columns.op[row], textOf('consumer', row),
    textOf('source', row), requestOf(row), verdictOf(row), ...findingsOf(row).map((each) => each[0])].join(' ').toLowerCase();
  return searchTexts[row];
}

function fits(row) {
  return (!filters.verdicts.size || filters.verdicts.has(verdictOf(row)))
    && (!filters.action || textOf('action', row) === filters.action)
    && (!filters.consumer || textOf('consumer', row) === filters.consumer)
    && (!filters.slower || columns.took[row] >= filters.slower * 10)
    && (!filters.stage || stateOf(row, filters.stage) === filters.state)
    && (!filters.code || findingsOf(row).some((each) => each[0] === filters.code))
    && filters.words.every((each) => searchText(row).includes(each));
}

const isFiltered = () => filters.words.length > 0 || filters.verdicts.size > 0 || filters.action !== '' || filters.consumer !== ''
  || filters.code !== '' || filters.slower > 0 || filters.stage > 0;

const SORTS = {
  verdict: (row) => severityRank[columns.verdict[row]], start: (row) => columns.start[row],
  work: (row) => columns.work[row] || columns.resource[row], consumer: (row) => textOf('consumer', row), request: requestOf,
  stages: (row) => columns.failed[row] || 10, took: (row) => columns.took[row], code: (row) => (findingsOf(row)[0] || ['~'])[0],
};

function select() {
  visible = [];
  for (let row = 0; row < total; row += 1) if (fits(row)) visible.push(row);
  const key = SORTS[order.by];
  const keys = new Map(visible.map((row) => [row, key(row)]));
  const sense = order.down ? -1 : 1;
  visible.sort((one, other) => {
    const a = keys.get(one), b = keys.get(other);
    return a < b ? -sense : a > b ? sense : columns.start[one] - columns.start[other] || one - other;
  });
}

const distinct = (name) => [...new Set(columns[name] || [])].map((number) => model.texts[number]).filter(Boolean).sort();
