// One request in full: its identifiers, waterfall, findings, and every record in order of time.
let asWritten = false;
let stageChosen = 0;

function drawRequest(row) {
  const verdict = verdictOf(row);
  const [glyph, tone] = VERDICT_SIGNS[verdict];
  const failed = columns.failed[row];
  const stage = failed ? ` at stage ${failed}` : '';
  const records = recordsOf(row);
  stageChosen = 0;
  const title = el('div', { class: 'title' },
    el('h2', {}, columns.work[row] || columns.resource[row]),
    el('span', { class: `badge b-${tone}` }, `${glyph} ${verdict}${verdict === 'superseded' && columns.by[row] ? ` by ${columns.by[row]}` : stage}`),
    el('button', { class: 'quiet', type: 'button', 'aria-label': 'Close the request', onclick: () => close() }, 'Close ', el('kbd', {}, 'Esc')));
  const facts = el('p', { class: 'facts' }, el('span', {}, el('b', {}, requestOf(row)), columns.incarnation[row] > 1 ? ` incarnation ${columns.incarnation[row]}` : ''),
    textOf('consumer', row) ? el('span', {}, 'consumer ', el('b', {}, textOf('consumer', row))) : '', textOf('source', row) ? el('span', {}, 'source ', el('b', {}, textOf('source', row))) : '',
    el('span', {}, 'took ', el('b', {}, span(columns.took[row]))), el('span', {}, moment(columns.start[row]).replace('T', ' ').slice(0, 23), ' UTC'));
  const command = `maestro trace request --resource-id ${columns.resource[row]} --nth ${nth[row]} --show timeline LOGS`;
  const ids = el('dl', { class: 'ids' }, ...pair('resource', columns.resource[row]), ...(columns.op[row] ? pair('op-id', columns.op[row]) : []), ...pair('command', command));
  const hasLines = records.some((record) => record.written);
  const toggle = el('button', { class: 'quiet', type: 'button', id: 'as-written', 'aria-pressed': String(asWritten), onclick: () => toggleWritten(row) }, asWritten ? 'descriptions ' : 'log lines ', el('kbd', {}, 'l'));
  $('request').replaceChildren(title, facts, ids,
    el('h3', {}, 'Waterfall', el('small', {}, 'agent stages are shaded; choose a stage to see its records')), waterfall(row, records, (number) => chooseStage(row, number)),
    ...(findingsOf(row).length ? [el('h3', {}, 'Findings'), ...findingsOf(row).map((each) => findingElement(row, each))] : []),
    el('h3', {}, 'Records', el('small', {}, `${plural(records.length, 'line')} of ${plural(new Set(records.map((each) => each.pod)).size, 'pod')}, in order of time`), hasLines ? toggle : ''), log(records));
}

function pair(name, value) {
  return [el('dt', {}, name), el('dd', {}, value, copyButton(value, name))];
}

function findingElement(row, [code, confidence, detail, evidence]) {
  const entry = model.codes[code];
  const tone = { error: 'bad', warn: 'warn', info: 'grey' }[entry.severity];
  const box = el('div', { class: 'finding' }, el('p', { class: 'headline' }, el('span', { class: `code t-${tone}` }, code), el('b', {}, entry.title), el('span', { class: 'muted' }, `${entry.severity}, ${confidence}`)));
  if (entry.severity === 'error' && entry.stage) box.append(el('p', { class: `t-${tone}` }, `ERROR: ${model.stages[entry.stage - 1][3]}`));
  if (detail) box.append(el('p', { class: 'detail' }, detail));
  box.append(el('p', {}, entry.cause), el('ul', {}, ...entry.advice.map((each) => el('li', { class: 'do' }, each))));
  for (const [file, line, description] of evidence) {
    box.append(el('pre', {}, `${model.writers[file][1]}:${line}\n${model.lines[`${file}:${line}`] || model.texts[description]}`));
  }
  if (entry.sql.length) {
    const literal = `'${columns.resource[row].replaceAll("'", "''")}'`;
    const statements = entry.sql.map((each) => each.replaceAll('$1', () => literal)).join(';\n');
    box.append(el('details', {}, el('summary', {}, 'Check in the database'), el('pre', {}, `${statements};`), copyButton(`${statements};`, 'the SQL')));
  }
  return box;
}

const where = (record) => (record.file.includes(record.pod) || !record.pod ? `${record.file}:${record.line}` : `${record.pod}  ${record.file}:${record.line}`);

function log(records) {
  return el('ol', { class: 'log', id: 'log' }, ...records.map((record) => el('li', {
    class: `${AGENT_STAGES.has(record.stage) ? 'agent' : ''}${stageChosen && stageChosen !== record.stage ? ' off' : ''}`, 'data-stage': record.stage,
  }, el('span', { class: 'at' }, `+${span(Math.max(0, record.at))}`), el('span', { class: 'num', title: `stage ${record.stage}` }, String(record.stage || '·')),
  el('div', { class: asWritten && record.written ? '' : 'description' }, asWritten && record.written ? el('code', {}, record.written) : el('span', {}, record.description),
    el('div', { class: 'where', title: where(record) }, el('bdi', {}, where(record)))))));
}

function toggleWritten(row) {
  asWritten = !asWritten;
  const top = document.querySelector('aside').scrollTop;
  drawRequest(row);
  document.querySelector('aside').scrollTop = top;
}

function chooseStage(row, number) {
  stageChosen = stageChosen === number ? 0 : number;
  for (const each of document.querySelectorAll('.fall .stage')) {
    const isOn = Number(each.dataset.stage) === stageChosen;
    each.classList.toggle('on', isOn);
    each.setAttribute('aria-pressed', String(isOn));
  }
  for (const each of document.querySelectorAll('#log li')) each.classList.toggle('off', stageChosen > 0 && Number(each.dataset.stage) !== stageChosen);
}
