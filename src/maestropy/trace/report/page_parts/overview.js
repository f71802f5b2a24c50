// The overview of the selected requests: states per stage, time per hop, findings, inputs.
const HOPS = [[1, 2, 'publish'], [2, 3, 'to the agent'], [3, 4, 'apply'], [4, 5, 'status out'], [5, 6, 'to the server'],
  [6, 7, 'handle'], [7, 8, 'broadcast'], [8, 9, 'to clients'], [1, 9, 'whole way']];
const BINS = 44;

function drawVerdicts() {
  const counts = new Map(BY_SEVERITY.map((verdict) => [verdict, 0]));
  for (let row = 0; row < total; row += 1) counts.set(verdictOf(row), counts.get(verdictOf(row)) + 1);
  const present = BY_SEVERITY.filter((verdict) => counts.get(verdict)).reverse();
  const tile = (verdict) => el('button', {
    class: 'verdict', type: 'button', 'data-verdict': verdict, 'aria-pressed': String(filters.verdicts.has(verdict)),
    onclick: () => toggleVerdict(verdict),
  }, el('b', {}, count(counts.get(verdict))), el('span', { class: 'share' }, share(counts.get(verdict), total)),
  el('span', { class: 'name' }, sign(VERDICT_SIGNS, verdict), verdict));
  const all = el('button', { class: 'verdict', type: 'button', 'aria-pressed': String(!filters.verdicts.size), onclick: () => toggleVerdict('') },
    el('b', {}, count(total)), '', el('span', { class: 'name' }, `request${total === 1 ? '' : 's'}`));
  $('verdicts').replaceChildren(all, ...present.map(tile));
  $('proportions').replaceChildren(...present.map((verdict) => {
    const part = el('span', { class: `t-${VERDICT_SIGNS[verdict][1]}` });
    part.style.flexGrow = counts.get(verdict);
    return part;
  }));
}

function drawOverview() {
  const parts = [matrixPart(), hopsPart(), findingsPart(), inputsPart()];
  $('overview').replaceChildren(...parts.filter(Boolean));
}

function part(title, note, ...content) {
  return el('section', {}, el('h2', {}, title, el('small', {}, note)), ...content);
}

function matrixPart() {
  const counts = model.stages.map(() => ({}));
  for (const row of visible) {
    for (let stage = 1; stage <= 9; stage += 1) {
      const state = stateOf(row, stage);
      counts[stage - 1][state] = (counts[stage - 1][state] || 0) + 1;
    }
  }
  const states = model.states.filter((state) => counts.some((each) => each[state]));
  const head = el('tr', {}, el('th', { scope: 'col' }, 'stage'), ...states.map((state) => el('th', { scope: 'col', class: 'right', title: STATE_TEXTS[state] },
    sign(SIGNS, state), ` ${state.replace('legit-absent', 'not needed').replace('-', ' ')}`)));
  const rows = model.stages.map(([number, , name]) => el('tr', {}, el('td', {}, el('span', { class: 'n' }, String(number)), name),
    ...states.map((state) => el('td', { class: 'right' }, matrixCell(number, name, state, counts[number - 1][state] || 0)))));
  return part('Where requests are', 'choose a number to see those requests', el('table', { id: 'matrix' }, el('thead', {}, head), el('tbody', {}, ...rows)));
}

function matrixCell(stage, name, state, number) {
  if (!number) return el('span', { class: 'zero', 'aria-label': '0' }, '·');
  const tone = state === 'ok' ? 'plain' : `b-${SIGNS[state][1]}`;
  return el('button', { class: `cell ${tone}`, type: 'button', 'aria-label': `${count(number)} ${state} at stage ${stage}, ${name}`,
    onclick: () => filterStage(stage, state) }, count(number));
}

function hopTimes() {
  const times = HOPS.map(() => []);
  for (const row of visible) {
    HOPS.forEach(([from, to], place) => {
      const start = columns.times[row][from - 1], end = columns.times[row][to - 1];
      if (start !== null && end !== null && stateOf(row, from) === 'ok' && stateOf(row, to) === 'ok') times[place].push(Math.max(1, end - start));
    });
  }
  return times.map((each) => Float64Array.from(each).sort());
}

function hopsPart() {
  const times = hopTimes();
  const longest = Math.max(...times.map((each) => each[each.length - 1] || 0));
  if (!longest) return null;
  const low = Math.log10(Math.max(1, Math.min(...times.filter((each) => each.length).map((each) => each[0])))), high = Math.log10(longest) + 0.02;
  const at = (tenths) => (Math.log10(Math.max(1, tenths)) - low) / Math.max(0.3, high - low);
  const middle = times.map((each) => each[Math.floor(each.length / 2)] || 0);
  const most = middle.slice(0, 8).indexOf(Math.max(...middle.slice(0, 8)));
  const rows = HOPS.map(([from, to, name], place) => hopRow(`${from} → ${to}`, name, times[place], at, place === most));
  const ticks = [];
  for (let power = Math.ceil(low); power <= high; power += 1) {
    const tick = el('span', {}, span(10 ** power));
    tick.style.left = `${100 * at(10 ** power)}%`;
    ticks.push(tick);
  }
  const head = el('tr', {}, el('th', { scope: 'col' }, 'hop'), el('th', { scope: 'col', class: 'hop-chart' }, el('div', { class: 'axis', 'aria-hidden': 'true' }, ...ticks), el('span', { class: 'hidden' }, 'distribution')),
    ...['p50', 'p90', 'p99', 'max'].map((name) => el('th', { scope: 'col', class: 'right' }, name)));
  return part('Time per hop', 'one logarithmic scale for all; the longest is marked', el('table', { id: 'hops' }, el('thead', {}, head), el('tbody', {}, ...rows.filter(Boolean))));
}

function hopRow(places, name, times, at, isMost) {
  if (!times.length) return null;
  const bins = new Array(BINS).fill(0);
  for (const time of times) bins[Math.min(BINS - 1, Math.floor(at(time) * BINS))] += 1;
  const peak = Math.max(...bins);
  const chart = svg('svg', { class: 'histogram', viewBox: `0 0 ${BINS} 24`, preserveAspectRatio: 'none', role: 'img', 'aria-label': `${count(times.length)} requests, p50 ${span(times[Math.floor(times.length / 2)])}` });
  chart.append(svg('line', { class: 'base', x1: 0, x2: BINS, y1: 24, y2: 24, 'vector-effect': 'non-scaling-stroke' }));
  bins.forEach((number, place) => {
    if (!number) return;
    const height = Math.max(1.5, 22 * Math.sqrt(number / peak));
    chart.append(svg('rect', { x: place + 0.06, y: 24 - height, width: 0.88, height }));
  });
  const quantile = (part_) => times[Math.min(times.length - 1, Math.floor(part_ * times.length))];
  chart.append(svg('line', { x1: at(quantile(0.5)) * BINS, x2: at(quantile(0.5)) * BINS, y1: 1, y2: 24, 'vector-effect': 'non-scaling-stroke' }));
  return el('tr', {}, el('td', {}, `${places} `, el('span', { class: 'who' }, name)), el('td', {}, chart),
    el('td', { class: isMost ? 'right largest' : 'right', title: isMost ? 'the hop that takes longest' : '' }, span(quantile(0.5))),
    ...[quantile(0.9), quantile(0.99), times[times.length - 1]].map((time) => el('td', { class: 'right' }, span(time))));
}

function findingsPart() {
  const counts = new Map();
  for (const row of visible) for (const [code] of findingsOf(row)) counts.set(code, (counts.get(code) || 0) + 1);
  if (!counts.size) return null;
  const rows = [...counts].sort((one, other) => other[1] - one[1]).map(([code, number]) => {
    const entry = model.codes[code];
    const tone = { error: 'bad', warn: 'warn', info: 'grey' }[entry.severity];
    return el('tr', {}, el('td', {}, el('button', { class: 'link code', type: 'button', onclick: () => filterCode(code) }, code)),
      el('td', {}, el('span', { class: `sign t-${tone}` }, entry.severity === 'error' ? '✕ ' : entry.severity === 'warn' ? '! ' : 'i '), entry.title), el('td', { class: 'right' }, count(number)));
  });
  return part('Findings', 'choose a code to see its requests', el('table', { id: 'findings' }, el('tbody', {}, ...rows)));
}

function inputsPart() {
  const { files, environment } = model.inputs;
  const rows = files.map((file) => el('tr', {}, el('td', { class: 'clip', title: file.path }, file.pod), el('td', {}, file.role), el('td', {}, file.generation),
    el('td', { class: 'right' }, `≥${file.verbosity}`), el('td', {}, file.first ? `${file.first.slice(11, 19)} – ${(file.last || '').slice(11, 19)}` : '–'), el('td', { class: 'right' }, count(file.lines || 0))));
  const head = el('tr', {}, ...['pod', 'role', 'gen', '-v', 'covers (UTC)', 'lines'].map((name, place) => el('th', { scope: 'col', class: place === 3 || place === 5 ? 'right' : '' }, name)));
  const notes = model.notes.map(([code, title, detail]) => el('p', { class: 'muted' }, el('span', { class: 'code' }, code), ` ${title}: ${detail}`));
  const about = [`broker ${environment.broker}`, environment.subscription === 'unknown' ? '' : environment.subscription, plural(environment.instances, 'server instance')].filter(Boolean).join(', ');
  return part('Inputs', about, el('table', {}, el('thead', {}, head), el('tbody', {}, ...rows)), ...notes);
}
