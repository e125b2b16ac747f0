// Filters, search, deep links, evidence. Text from targets is only ever moved as nodes, never parsed as HTML.
(function () {
  'use strict'
  const root = document.documentElement
  const all = (selector, within) => Array.from((within || document).querySelectorAll(selector))
  const one = (selector, within) => (within || document).querySelector(selector)

  // theme: that of the system, until the reader chooses
  const stored = (value) => {
    try {
      return value === undefined ? localStorage.getItem('conformance-theme') : localStorage.setItem('conformance-theme', value)
    } catch { return null }
  }
  if (stored()) root.dataset.theme = stored()
  all('[data-theme-switch]').forEach((button) => button.addEventListener('click', () => {
    const dark = root.dataset.theme ? root.dataset.theme === 'dark' : matchMedia('(prefers-color-scheme: dark)').matches
    root.dataset.theme = dark ? 'light' : 'dark'
    stored(root.dataset.theme)
  }))

  // rows
  const rows = all('.reqs .r')
  const set = (row, open) => {
    textOf(row) // before evidence is cloned into the row, so that a search finds the same in opened rows
    one('.open', row).setAttribute('aria-expanded', open)
    one('.d', row).hidden = !open
    const pair = open && one('.pair:empty', row)
    if (pair) all(':scope > .code, :scope > .more > .code', one('.xb', document.getElementById(pair.dataset.x))).forEach((code) => pair.append(code.cloneNode(true)))
    if (open) { const first = one('.occ', row); if (first) first.open = true }
  }
  rows.forEach((row) => row.rows[0].addEventListener('click', (event) => {
    if (event.target.closest('a') || String(getSelection())) return
    set(row, one('.d', row).hidden)
  }))

  // evidence: each exchange is in the page once, and cloned where it is opened
  const fill = (occ) => {
    const source = occ.dataset.x && document.getElementById(occ.dataset.x)
    if (!source || one(':scope > .xb', occ)) return
    const copy = one('.xb', source).cloneNode(true)
    const here = occ.dataset.e !== undefined && one('.ev[data-e="' + Number(occ.dataset.e) + '"]', copy)
    const go = one(':scope > .goto', occ)
    if (go) go.replaceWith(copy)
    if (here) {
      here.classList.add('here')
      const wire = one('.wire', copy)
      wire.scrollTop = Math.max(here.offsetTop - wire.offsetTop - wire.clientHeight / 3, 0)
    }
  }
  all('.occ, .beside').forEach((occ) => occ.addEventListener('toggle', () => { if (occ.open) fill(occ) }))

  // copy
  document.addEventListener('click', (event) => {
    const button = event.target.closest('.copy')
    if (!button) return
    const text = one('pre', button.parentElement)
    const done = () => { button.textContent = 'copied'; setTimeout(() => { button.textContent = 'copy' }, 1500) }
    const select = () => { getSelection().selectAllChildren(text); document.execCommand('copy'); done() }
    if (navigator.clipboard) navigator.clipboard.writeText(text.textContent).then(done, select)
    else select()
  })

  // filters: chips of one kind add up, kinds narrow one another; all are in the fragment of the address, behind a `?`
  const search = one('#q')
  const fold = one('#fold')
  const chosen = {}
  const words = new Map()
  let unfolded = false
  const textOf = (row) => {
    if (!words.has(row)) words.set(row, row.textContent.toLowerCase())
    return words.get(row)
  }
  const address = () => {
    const fragment = location.hash.slice(1)
    const mark = fragment.indexOf('?')
    let id = mark < 0 ? fragment : fragment.slice(0, mark)
    try { id = decodeURIComponent(id) } catch { id = '' }
    return { id, filters: mark < 0 ? null : new URLSearchParams(fragment.slice(mark + 1)) }
  }
  const remember = (id) => {
    const filters = new URLSearchParams()
    Object.entries(chosen).forEach(([key, values]) => values.forEach((value) => filters.append(key, value)))
    if (search && search.value.trim()) filters.set('q', search.value.trim())
    if (unfolded) filters.set('all', '1')
    const said = String(filters)
    const wanted = '#' + encodeURI(id) + (said ? '?' + said : '')
    if (wanted !== (location.hash || '#')) history.replaceState(null, '', wanted)
  }
  const folded = (row) => /^(pass|not_run|not_applicable)$/.test(row.dataset.o)
  const filter = () => {
    const asked = search.value.trim().toLowerCase().split(/\s+/).filter(Boolean)
    const narrowed = asked.length > 0 || Object.values(chosen).some((values) => values.size)
    let shown = 0
    rows.forEach((row) => {
      const fits = Object.entries(chosen).every(([key, values]) => !values.size || values.has(row.dataset[key])) &&
        asked.every((word) => textOf(row).includes(word))
      row.hidden = !fits || (!narrowed && !unfolded && folded(row))
      shown += fits
    })
    const areas = Array.from(chosen.a || [])
    one('#shown').textContent = narrowed
      ? shown + ' of ' + rows.length + ' requirements' + (areas.length ? ' in ' + areas.join(', ') : '')
      : rows.length + ' requirements'
    one('#clear').hidden = !narrowed
    one('#none').hidden = shown > 0
    fold.hidden = narrowed || unfolded || !rows.some(folded)
  }
  const buttons = () => all('.chip, .area')
  const kind = (button) => button.dataset.area ? ['a', button.dataset.area] : [button.dataset.key, button.dataset.value]
  const choose = (button, on) => {
    const [key, value] = kind(button)
    const values = chosen[key] = chosen[key] || new Set()
    if (on) values.add(value); else values.delete(value)
    button.setAttribute('aria-pressed', on)
  }
  const changed = () => { filter(); remember(address().id) }
  const press = (button) => { choose(button, button.getAttribute('aria-pressed') !== 'true'); changed() }
  const clear = () => {
    buttons().forEach((button) => choose(button, false))
    search.value = ''
    filter()
  }
  const restore = (filters) => {
    buttons().forEach((button) => { const [key, value] = kind(button); choose(button, filters.getAll(key).includes(value)) })
    search.value = filters.get('q') || ''
    unfolded = filters.has('all')
    filter()
  }
  const visit = (row) => {
    rows.forEach((other) => other.classList.toggle('at', other === row))
    set(row, true)
    row.scrollIntoView()
  }
  const step = (forward) => {
    const failures = all('.reqs .r').filter((row) => !row.hidden && /^(fail|flaky|warn|error)$/.test(row.dataset.o))
    const here = failures.findIndex((row) => row.classList.contains('at'))
    const next = failures[here < 0 ? (forward ? 0 : failures.length - 1) : here + (forward ? 1 : -1)]
    if (!next) return
    remember(next.id)
    visit(next)
    one('.open', next).focus({ preventScroll: true })
  }
  if (search) {
    all('.chip').forEach((chip) => chip.addEventListener('click', () => press(chip)))
    all('.area').forEach((area) => area.addEventListener('click', () => {
      press(area)
      if (area.getAttribute('aria-pressed') === 'true') one('#requirements').scrollIntoView()
    }))
    search.addEventListener('input', changed)
    one('#clear').addEventListener('click', () => { clear(); remember(address().id) })
    one('button', fold).addEventListener('click', () => { unfolded = true; changed() })
    document.addEventListener('keydown', (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey) return
      if (/^(INPUT|TEXTAREA|SELECT)$/.test(document.activeElement.tagName)) return
      if (event.key === '/') {
        event.preventDefault()
        search.focus()
      }
      if (event.key === 'n' || event.key === 'p') step(event.key === 'n')
    })
  }

  // the index: areas open to their requirements
  const expand = (button, open) => {
    button.setAttribute('aria-expanded', open)
    document.getElementById(button.getAttribute('aria-controls')).hidden = !open
  }
  const areas = all('.matrix .open')
  all('.matrix .arow').forEach((row) => row.addEventListener('click', (event) => {
    const button = one('.open', row)
    if (!event.target.closest('a')) expand(button, button.getAttribute('aria-expanded') !== 'true')
  }))
  all('[data-all]').forEach((button) => button.addEventListener('click', () => {
    areas.forEach((area) => expand(area, button.dataset.all === 'true'))
  }))

  // sorting
  const order = rows.slice()
  const keyOf = { o: null, a: (row) => row.dataset.a, id: (row) => row.id, l: (row) => row.dataset.l,
    y: (row) => row.dataset.y, p: (row) => row.rows[0].cells[5].textContent, n: (row) => Number(row.dataset.n),
    s: (row) => row.rows[0].cells[7].textContent }
  all('.reqs [data-sort]').forEach((button) => button.addEventListener('click', () => {
    const head = button.parentElement
    const down = head.getAttribute('aria-sort') === 'ascending'
    all('.reqs [aria-sort]').forEach((other) => other.removeAttribute('aria-sort'))
    head.setAttribute('aria-sort', down ? 'descending' : 'ascending')
    const key = keyOf[button.dataset.sort]
    const sorted = order.slice()
    if (key) sorted.sort((a, b) => { const x = key(a), y = key(b); return x < y ? -1 : x > y ? 1 : 0 })
    if (down) sorted.reverse()
    sorted.forEach((row) => row.parentElement.insertBefore(row, fold))
  }))

  // deep links: filters that the address does not mention stay, unless they hide the row
  const follow = () => {
    const { id, filters } = address()
    if (search && filters) restore(filters)
    const target = id && document.getElementById(id)
    if (target && target.matches('.reqs .r')) {
      if (target.hidden) clear()
      if (target.hidden) { unfolded = true; filter() }
      visit(target)
    } else if (target) {
      if (target.matches('details')) target.open = true
      target.scrollIntoView()
    }
    if (search) remember(id)
  }
  addEventListener('hashchange', follow)
  document.addEventListener('click', (event) => {
    const link = event.target.closest('a[href^="#"]')
    if (link && link.hash.slice(1) === encodeURI(address().id)) follow()
  })

  // narrow pages and print hide columns, so cells that span all columns must span fewer
  const span = () => {
    const heads = all('.reqs thead th').filter((head) => getComputedStyle(head).display !== 'none').length
    all('.reqs .d > td, #none td, #fold td').forEach((cell) => { cell.colSpan = heads })
  }
  all('.reqs').forEach(() => ['(max-width: 1080px)', '(max-width: 640px)', 'print'].forEach((query) => {
    matchMedia(query).addEventListener('change', span)
  }))

  // printing opens what is broken
  addEventListener('beforeprint', () => rows.forEach((row) => {
    if (/^(fail|flaky|warn)$/.test(row.dataset.o) && !row.hidden) set(row, true)
  }))

  // inside pytest-html's page: our report first, its own table folded below
  const settle = () => {
    const ours = one('#conformance')
    const theirs = one('#results-table')
    if (ours && theirs) {
      root.lang = 'en'
      if (!one('meta[name=viewport]')) {
        const meta = document.createElement('meta')
        meta.name = 'viewport'
        meta.content = 'width=device-width, initial-scale=1'
        document.head.append(meta)
      }
      const main = document.createElement('main')
      main.append(ours)
      const fold = document.createElement('details')
      fold.className = 'pytest'
      const title = document.createElement('summary')
      title.textContent = 'The same results in pytest-html\u2019s own table'
      fold.append(title)
      Array.from(document.body.children).forEach((node) => { if (node.tagName !== 'FOOTER') fold.append(node) })
      document.body.prepend(main, fold)
    }
    span()
    follow()
  }
  if (document.readyState === 'loading') document.addEventListener('DOMContentLoaded', settle)
  else settle()
})()
