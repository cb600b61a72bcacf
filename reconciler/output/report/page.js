"use strict"
// Nothing here is needed for reading: ages, a filter, and arrow keys in the matrix.
const now = Date.now()
const units = [[31557600e3, "year"], [86400e3, "day"], [3600e3, "hour"], [60e3, "minute"]]
for (const time of document.querySelectorAll("main time")) {
  const past = now - Date.parse(time.dateTime)
  const unit = units.find(([length]) => past >= length)
  if (!unit) continue
  const number = Math.floor(past / unit[0])
  const age = `${number} ${unit[1]}${number === 1 ? "" : "s"}`
  if (time.closest(".matrix")) {
    // there is no room for both
    time.title = time.textContent
    time.textContent = `${number} ${unit[1][0]}`
  } else {
    time.append(` (${age} ago)`)
  }
}

const form = document.querySelector(".filter")
const [search, state, told] = ["input", "select", "output"].map(one => form.querySelector(one))
const rows = [...document.querySelectorAll(".matrix tbody tr")]
const well = document.querySelector(".well")
const openAtFirst = well?.open
function filter() {
  const words = search.value.toLowerCase().split(/\s+/).filter(Boolean)
  let shown = 0
  for (const row of rows) {
    const states = row.dataset.states.split(" ")
    const fits = words.every(word => row.dataset.find.includes(word)) && (!state.value || states.includes(state.value))
    row.hidden = !fits
    shown += fits
  }
  const filters = words.length > 0 || Boolean(state.value)
  told.value = filters ? `${shown} of ${rows.length}` : ""
  if (well) well.open = filters ? rows.some(row => !row.hidden && well.contains(row)) : openAtFirst
  document.querySelectorAll(".matrix").forEach(settle)
}
form.hidden = rows.length < 2
form.addEventListener("submit", event => event.preventDefault())
for (const event of ["input", "change"]) form.addEventListener(event, filter)

// one stop of the tab key in each matrix; from there, arrows
const links = row => [...row.querySelectorAll("a, summary")]
const visible = table => [...table.tBodies[0].rows].filter(row => !row.hidden && links(row).length)
function settle(table) {
  const held = table.querySelector('tbody [tabindex="0"]')
  if (held && !held.closest("tr").hidden) return
  if (held) held.tabIndex = -1
  const first = visible(table)[0]
  if (first) links(first)[0].tabIndex = 0
}
function move(table, from, to) {
  if (!to) return
  from.tabIndex = -1
  to.tabIndex = 0
  to.focus()
}
function beside(row, from, step) {
  const all = links(row)
  return all[all.indexOf(from) + step]
}
function inColumn(row, column) {
  const all = links(row)
  return all.find(link => link.closest("td, th").cellIndex >= column) ?? all.at(-1)
}
for (const table of document.querySelectorAll(".matrix")) {
  for (const link of table.querySelectorAll("tbody a, tbody summary")) link.tabIndex = -1
  settle(table)
  table.addEventListener("keydown", event => {
    const from = event.target.closest("tbody a, tbody summary")
    if (!from || event.altKey || event.metaKey) return
    const row = from.closest("tr")
    const there = visible(table)
    const at = there.indexOf(row)
    const column = from.closest("td, th").cellIndex
    const far = event.ctrlKey
    const ways = {
      ArrowRight: () => beside(row, from, 1),
      ArrowLeft: () => beside(row, from, -1),
      ArrowDown: () => there[at + 1] && inColumn(there[at + 1], column),
      ArrowUp: () => there[at - 1] && inColumn(there[at - 1], column),
      Home: () => links(far ? there[0] : row)[0],
      End: () => links(far ? there.at(-1) : row).at(-1),
    }
    if (!(event.key in ways)) return
    event.preventDefault()
    move(table, from, ways[event.key]())
  })
  table.addEventListener("focusin", event => {
    const link = event.target.closest("tbody a, tbody summary")
    const held = table.querySelector('tbody [tabindex="0"]')
    if (link && held && held !== link) held.tabIndex = -1
    if (link) link.tabIndex = 0
  })
}
