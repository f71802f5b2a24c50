// One request over time: a bar per hop, a tick per stage, a dot per record.
const STANDING_BY = /^(no clients registered|processed by another)/;

function waterfall(row, records, chooseStage) {
  const length = Math.max(1, columns.took[row]);
  const at = (tenths) => Math.max(0, Math.min(100, (100 * tenths) / length));
  const hops = hopsOf(row);
  const most = Math.max(...hops.map((hop) => hop || 0));
  const notes = model.stageNotes[row] || {};
  const box = el('div', { class: 'fall', role: 'group', 'aria-label': 'Waterfall' });
  box.append(el('div', { class: 'ticks' }), el('div', { class: 'ticks', 'aria-hidden': 'true' }, ...ticks(length, at)), el('div', { class: 'ticks' }), el('div', { class: 'ticks' }));
  for (const [number, , name] of model.stages) {
    const state = stateOf(row, number);
    const own = records.filter((record) => record.stage === number);
    const acting = own.filter((record) => !STANDING_BY.test(record.description));
    const pods = [...new Set((acting.length ? acting : own).map((record) => record.pod))];
    const where = pods.length > 1 ? `${pods.length} pods` : pods[0] || '';
    const lane = AGENT_STAGES.has(number) ? ' agent' : '';
    const [glyph, tone] = SIGNS[state];
    const time = columns.times[row][number - 1];
    const under = [where, notes[number]].filter(Boolean).join(', ');
    const label = el('button', { class: `stage${lane}`, type: 'button', 'data-stage': number, 'aria-pressed': 'false', title: [state, ...pods, notes[number]].filter(Boolean).join('\n'),
      'aria-label': `Stage ${number}, ${name}: ${state}${hops[number - 1] === null ? '' : `, after ${span(hops[number - 1])}`}`, onclick: () => chooseStage(number) },
    el('span', { class: `sign b-${tone}` }, glyph), el('span', {}, `${number} ${name}`, under ? el('small', {}, under) : ''));
    box.append(label, track(row, number, { own, hops, at, most, lane }),
      el('div', { class: `right${lane}` }, hops[number - 1] === null ? '' : span(hops[number - 1])),
      el('div', { class: `time${lane}` }, time === null ? '' : clock(columns.start[row] + time)));
  }
  return box;
}

function track(row, number, { own, hops, at, most, lane }) {
  const state = stateOf(row, number);
  const time = columns.times[row][number - 1];
  const tone = state === 'failed' ? ' bad' : state === 'missing' ? ' warn' : '';
  const element = el('div', { class: `track${lane}`, 'aria-hidden': 'true' });
  if (time === null) {
    if (state !== 'ok') element.append(el('em', {}, state === 'missing' ? 'no record of it' : STATE_TEXTS[state]));
    return element;
  }
  const hop = hops[number - 1] || 0;
  const bar = el('i', { class: `${hop === most && hop > 0 ? 'most' : ''}${tone}` });
  bar.style.left = `${at(time - hop)}%`;
  bar.style.width = `${at(time) - at(time - hop)}%`;
  const end = el('u', { class: tone.trim() });
  end.style.left = `calc(${at(time)}% - ${at(time) / 50}px)`;
  if (hop) element.append(bar);
  element.append(end);
  for (const record of own) {
    const dot = el('s');
    dot.style.left = `${at(record.at)}%`;
    element.append(dot);
  }
  return element;
}

function ticks(length, at) {
  const rough = length / 4;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((each) => each * power).find((each) => each >= rough);
  const element = [];
  for (let time = 0; time < length * 0.78; time += step) {
    const tick = el('span', {}, time ? span(time) : '0');
    tick.style.left = `${at(time)}%`;
    element.push(tick);
  }
  const end = el('span', {}, span(length));
  end.style.left = '100%';
  return [...element, end];
}
