// Event handling: filters, keys, the location hash, the theme.
function refresh() {
  select();
  cursor = opened >= 0 ? visible.indexOf(opened) : -1;
  drawVerdicts();
  drawHead();
  drawRows();
  if (opened < 0) drawOverview();
  $('shown').textContent = visible.length === total ? plural(total, 'request') : `${count(visible.length)} of ${count(total)}`;
  $('clear').hidden = !isFiltered();
  $('by-action').classList.toggle('on', filters.action !== '');
  $('by-consumer').classList.toggle('on', filters.consumer !== '');
  $('by-code').classList.toggle('on', filters.code !== '');
  $('slower').classList.toggle('on', filters.slower > 0);
  $('stage-filter').replaceChildren(...(filters.stage ? [el('button', { class: `chip b-${SIGNS[filters.state][1]}`, type: 'button', 'aria-label': 'Remove the filter by stage',
    onclick: () => filterStage(0, '') }, `stage ${filters.stage} ${filters.state} ×`)] : []));
}

function open(row) {
  opened = row;
  $('overview').hidden = true;
  $('request').hidden = false;
  drawRequest(row);
  document.querySelector('aside').scrollTop = 0;
  if (matchMedia('(max-width: 1020px)').matches) document.querySelector('aside').scrollIntoView();
  cursor = visible.indexOf(row);
  drawRows();
  if (decodeURIComponent(location.hash.slice(1)) !== idOf(row)) history.replaceState(null, '', `#${encodeURIComponent(idOf(row))}`);
}

function close() {
  opened = -1;
  $('request').hidden = true;
  $('overview').hidden = false;
  drawOverview();
  drawRows();
  history.replaceState(null, '', location.pathname + location.search);
  $('grid').focus({ preventScroll: true });
}

function follow() {
  const id = decodeURIComponent(location.hash.slice(1));
  const row = id ? rowOf(id) : undefined;
  if (row === undefined || row === opened) return;
  if (!visible.includes(row)) clearFilters();
  open(row);
  moveTo(visible.indexOf(row));
}

function changed() {
  $('scroll').scrollTop = 0;
  if (opened >= 0 && !fits(opened)) close();
  refresh();
}

function toggleVerdict(verdict) {
  if (!verdict) filters.verdicts.clear();
  else if (!filters.verdicts.delete(verdict)) filters.verdicts.add(verdict);
  changed();
}

function filterStage(stage, state) {
  Object.assign(filters, { stage, state });
  changed();
}

function filterCode(code) {
  filters.code = $('by-code').value = code;
  changed();
}

function clearFilters() {
  filters.verdicts.clear();
  Object.assign(filters, { words: [], action: '', consumer: '', code: '', slower: 0, stage: 0, state: '' });
  for (const id of ['search', 'by-action', 'by-consumer', 'by-code', 'slower']) $(id).value = '';
  changed();
}

function fillFilters() {
  const fill = (id, title, values) => $(id).replaceChildren(el('option', { value: '' }, title), ...values.map((value) => el('option', { value }, value)));
  fill('by-action', 'any request', distinct('action'));
  fill('by-consumer', 'any consumer', distinct('consumer'));
  fill('by-code', 'any finding', Object.keys(model.codes).sort());
  $('by-consumer-label').hidden = distinct('consumer').length < 2;
  const on = (id, event, take) => $(id).addEventListener(event, () => { take($(id).value); changed(); });
  on('search', 'input', (value) => { filters.words = value.toLowerCase().split(/\s+/).filter(Boolean); });
  on('by-action', 'change', (value) => { filters.action = value; });
  on('by-consumer', 'change', (value) => { filters.consumer = value; });
  on('by-code', 'change', (value) => { filters.code = value; });
  on('slower', 'input', (value) => { filters.slower = Number(value) || 0; });
  $('filters').addEventListener('submit', (event) => { event.preventDefault(); moveTo(0); open(visible[0] ?? opened); });
  $('clear').addEventListener('click', clearFilters);
  $('clear-too').addEventListener('click', clearFilters);
}

function setTheme(theme) {
  document.documentElement.dataset.theme = theme;
  for (const each of document.querySelectorAll('[data-theme-choice]')) each.setAttribute('aria-checked', String(each.dataset.themeChoice === theme));
  try { localStorage.setItem('maestro-trace-theme', theme); } catch { /* a page without storage forgets it */ }
}

function keptTheme() {
  try { return localStorage.getItem('maestro-trace-theme') || 'auto'; } catch { return 'auto'; }
}

const KEYS = {
  j: () => moveTo(cursor + 1), ArrowDown: () => moveTo(cursor + 1), k: () => moveTo(cursor - 1), ArrowUp: () => moveTo(cursor - 1),
  g: () => moveTo(0), G: () => moveTo(visible.length - 1), '/': () => $('search').focus(), '?': () => $('help').showModal(),
  Enter: () => { if (visible.length) open(visible[Math.max(0, cursor)]); },
  Escape: () => { if (opened >= 0) close(); else if (isFiltered()) clearFilters(); },
  l: () => { if (opened >= 0) toggleWritten(opened); },
  t: () => setTheme({ auto: 'light', light: 'dark', dark: 'auto' }[document.documentElement.dataset.theme]),
};

function onKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || $('help').open) return;
  const place = event.target;
  const isTyping = place.matches('input, select');
  if (isTyping && event.key === 'Escape') { place.blur(); $('grid').focus({ preventScroll: true }); event.preventDefault(); return; }
  if (isTyping || (event.key === 'Enter' && place.matches('button, summary, a'))) return;
  if (!(event.key in KEYS)) return;
  if (event.key.startsWith('Arrow') && !place.contains($('scroll')) && place !== $('scroll')) return;
  event.preventDefault();
  KEYS[event.key]();
}

async function start() {
  setTheme(keptTheme());
  for (const each of document.querySelectorAll('[data-theme-choice]')) each.addEventListener('click', () => setTheme(each.dataset.themeChoice));
  $('help-open').addEventListener('click', () => $('help').showModal());
  await load();
  $('period').textContent = model.about.line;
  fillFilters();
  refresh();
  let drawing = 0;
  $('scroll').addEventListener('scroll', () => { drawing ||= requestAnimationFrame(() => { drawing = 0; drawRows(); }); }, { passive: true });
  addEventListener('resize', () => drawRows());
  addEventListener('hashchange', follow);
  addEventListener('keydown', onKey);
  addEventListener('beforeprint', () => drawRows(true));
  addEventListener('afterprint', () => drawRows());
  follow();
  document.documentElement.dataset.ready = String(total);
}

start().catch((error) => {
  $('error').hidden = false;
  $('error').textContent = `This page cannot show its data: ${error.message}. It needs a browser of 2023 or newer; maestro trace requests LOGS prints the same.`;
  throw error;
});
