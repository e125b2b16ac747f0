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

  // filters: chips of one kind add up, kinds narrow one another
  const search = one('#q')
  const chosen = {}
  const words = new Map()
  const textOf = (row) => {
    if (!words.has(row)) words.set(row, row.textContent.toLowerCase())
    return words.get(row)
  }
  const filter = () => {
    const asked = search.value.trim().toLowerCase().split(/\s+/).filter(Boolean)
    let shown = 0
    rows.forEach((row) => {
      const fits = Object.entries(chosen).every(([key, values]) => !values.size || values.has(row.dataset[key])) &&
        asked.every((word) => textOf(row).includes(word))
      row.hidden = !fits
      shown += fits
    })
    const narrowed = asked.length || Object.values(chosen).some((values) => values.size)
    one('#shown').textContent = narrowed ? shown + ' of ' + rows.length + ' requirements' : rows.length + ' requirements'
    one('#clear').hidden = !narrowed
    one('#none').hidden = shown > 0
  }
  const press = (button, key, value) => {
    const values = chosen[key] = chosen[key] || new Set()
    const on = !values.has(value)
    if (on) values.add(value); else values.delete(value)
    button.setAttribute('aria-pressed', on)
    filter()
  }
  const clear = () => {
    Object.values(chosen).forEach((values) => values.clear())
    all('.chip, .area').forEach((button) => button.setAttribute('aria-pressed', false))
    if (search) search.value = ''
    filter()
  }
  if (search) {
    all('.chip').forEach((chip) => chip.addEventListener('click', () => press(chip, chip.dataset.key, chip.dataset.value)))
    all('.area').forEach((area) => area.addEventListener('click', () => {
      press(area, 'a', area.dataset.area)
      if (area.getAttribute('aria-pressed') === 'true') one('#requirements').scrollIntoView()
    }))
    search.addEventListener('input', filter)
    one('#clear').addEventListener('click', clear)
    document.addEventListener('keydown', (event) => {
      if (event.key === '/' && !/^(INPUT|TEXTAREA|SELECT)$/.test(document.activeElement.tagName)) {
        event.preventDefault()
        search.focus()
      }
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
    sorted.forEach((row) => row.parentElement.insertBefore(row, one('#none')))
  }))

  // deep links
  const follow = () => {
    let id = location.hash.slice(1)
    try { id = decodeURIComponent(id) } catch { return }
    const target = id && document.getElementById(id)
    if (!target) return
    if (target.matches('.reqs .r')) {
      if (target.hidden) clear()
      set(target, true)
    }
    if (target.matches('details')) target.open = true
    target.scrollIntoView()
  }
  addEventListener('hashchange', follow)
  document.addEventListener('click', (event) => {
    const link = event.target.closest('a[href^="#"]')
    if (link && link.hash === location.hash) follow()
  })

  // narrow pages and print hide columns, so cells that span all columns must span fewer
  const span = () => {
    const heads = all('.reqs thead th').filter((head) => getComputedStyle(head).display !== 'none').length
    all('.reqs .d > td, #none td').forEach((cell) => { cell.colSpan = heads })
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
