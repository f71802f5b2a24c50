// The list. Only the visible rows exist; each is thirty pixels high.
const HEIGHT = 30;
const COLUMNS = [['verdict', 'verdict'], ['start', 'start, UTC'], ['work', 'work'], ['consumer', 'consumer'], ['request', 'request'],
  ['stages', '1 – 9'], ['took', 'took'], ['code', 'finding']];
let cursor = -1;
let opened = -1;
let slowest = 1;
let hasConsumers = false;

function drawHead() {
  hasConsumers = distinct('consumer').length > 1;
  $('grid').style.setProperty('--consumer', hasConsumers ? '90px' : '0px');
  const took = Float64Array.from(columns.took || []).sort();
  slowest = Math.max(1, took[Math.floor(took.length * 0.99)] || 1);
  $('head').replaceChildren(...COLUMNS.map(([name, title]) => {
    const sorted = order.by === name ? (order.down ? 'descending' : 'ascending') : 'none';
    const arrow = order.by === name ? (order.down ? ' ↓' : ' ↑') : '';
    return el('div', { role: 'columnheader', 'aria-sort': sorted, class: name === 'took' ? 'right' : '' },
      el('button', { type: 'button', 'data-sort': name, tabindex: name === 'consumer' && !hasConsumers ? -1 : 0, onclick: () => sortBy(name) }, title + arrow));
  }));
  $('grid').setAttribute('aria-rowcount', visible.length + 1);
}

function drawRows(isPrinting) {
  const scroll = $('scroll');
  const first = isPrinting ? 0 : Math.max(0, Math.floor(scroll.scrollTop / HEIGHT) - 5);
  const last = isPrinting ? Math.min(visible.length, 200) : Math.min(visible.length, first + Math.ceil(scroll.clientHeight / HEIGHT) + 10);
  $('space').style.height = `${visible.length * HEIGHT}px`;
  $('rows').style.transform = `translateY(${first * HEIGHT}px)`;
  const element = [];
  for (let place = first; place < last; place += 1) element.push(rowElement(visible[place], place));
  $('rows').replaceChildren(...element);
  $('none').hidden = visible.length > 0;
  if (cursor >= first && cursor < last) $('grid').setAttribute('aria-activedescendant', `row-${cursor}`);
  else $('grid').removeAttribute('aria-activedescendant');
}

function rowElement(row, place) {
  const verdict = verdictOf(row);
  const took = columns.took[row];
  const bar = el('i');
  bar.style.width = `${Math.min(100, (100 * took) / slowest)}%`;
  const code = findingsOf(row)[0];
  const cells = [
    el('span', {}, sign(VERDICT_SIGNS, verdict), ` ${verdict}`),
    el('span', { class: 'muted' }, clock(columns.start[row])),
    el('span', { class: 'strong', title: columns.resource[row] }, columns.work[row] || short(columns.resource[row])),
    el('span', { class: 'muted' }, hasConsumers ? textOf('consumer', row) : ''),
    el('span', {}, requestOf(row)),
    strip(row),
    el('span', { class: 'right took' }, bar, el('b', {}, took ? span(took) : '–')),
    el('span', { class: 'code' }, code ? code[0] : ''),
  ];
  for (const cell of cells) cell.setAttribute('role', 'gridcell');
  return el('div', {
    class: `row${place === cursor ? ' cursor' : ''}`, role: 'row', id: `row-${place}`, 'aria-rowindex': place + 2,
    'aria-selected': String(row === opened), onclick: () => { cursor = place; open(row); },
  }, ...cells);
}

function strip(row) {
  const parts = [];
  const words = [];
  for (let stage = 1; stage <= 9; stage += 1) {
    const state = stateOf(row, stage);
    const [glyph, tone] = SIGNS[state];
    parts.push(el('span', { class: `b-${tone}`, 'aria-hidden': 'true' }, state === 'ok' ? '' : glyph));
    if (state !== 'ok') words.push(`${stage} ${state}`);
  }
  return el('span', { class: 'strip', title: words.join(', ') || 'all stages ok', 'aria-label': words.join(', ') || 'all stages ok' }, ...parts);
}

function moveTo(place) {
  if (!visible.length) return;
  cursor = Math.max(0, Math.min(visible.length - 1, place));
  const scroll = $('scroll');
  const top = cursor * HEIGHT;
  if (top < scroll.scrollTop) scroll.scrollTop = top;
  if (top + HEIGHT > scroll.scrollTop + scroll.clientHeight) scroll.scrollTop = top + HEIGHT - scroll.clientHeight;
  if (opened >= 0) open(visible[cursor]);
  else drawRows();
}

function sortBy(name) {
  order.down = order.by === name ? !order.down : name === 'took';
  order.by = name;
  refresh();
}
