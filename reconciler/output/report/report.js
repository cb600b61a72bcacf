"use strict"
// The page is readable without this script. It adds ages, a filter, and arrow keys in the matrix.
const now = Date.now()
const units = [[31557600e3, "year"], [86400e3, "day"], [3600e3, "hour"], [60e3, "minute"]]
for (const time of document.querySelectorAll("section time")) {
  const elapsed = now - Date.parse(time.dateTime)
  const unit = units.find(([length]) => elapsed >= length)
  if (!unit) continue
  const number = Math.floor(elapsed / unit[0])
  const age = `${number} ${unit[1]}${number === 1 ? "" : "s"}`
  if (time.closest(".matrix")) {
    // A cell is too narrow for the date and the age.
    time.title = time.textContent
    time.textContent = `${number} ${unit[1][0]}`
  } else {
    time.append(` (${age} ago)`)
  }
}

const form = document.querySelector(".filter")
const [search, state, result] = ["input", "select", "output"].map(selector => form.querySelector(selector))
const rows = [...document.querySelectorAll(".matrix tbody tr")]
const completed = document.querySelector(".completed")
const isInitiallyOpen = completed?.open
function filterRows() {
  const words = search.value.toLowerCase().split(/\s+/).filter(Boolean)
  let matchCount = 0
  for (const row of rows) {
    const states = row.dataset.states.split(" ")
    const hasWords = words.every(word => row.dataset.searchText.includes(word))
    const isMatch = hasWords && (!state.value || states.includes(state.value))
    row.hidden = !isMatch
    matchCount += isMatch
  }
  const isFiltered = words.length > 0 || Boolean(state.value)
  result.value = isFiltered ? `${matchCount} of ${rows.length}` : ""
  if (completed) completed.open = isFiltered ? rows.some(row => !row.hidden && completed.contains(row)) : isInitiallyOpen
  document.querySelectorAll(".matrix").forEach(updateTabStop)
}
form.hidden = rows.length < 2
form.addEventListener("submit", event => event.preventDefault())
for (const event of ["input", "change"]) form.addEventListener(event, filterRows)

// Each matrix has one tab stop. The arrow keys move this tab stop between links.
const listLinks = row => [...row.querySelectorAll("a, summary")]
const listVisibleRows = table => [...table.tBodies[0].rows].filter(row => !row.hidden && listLinks(row).length)
function updateTabStop(table) {
  const current = table.querySelector('tbody [tabindex="0"]')
  if (current && !current.closest("tr").hidden) return
  if (current) current.tabIndex = -1
  const firstRow = listVisibleRows(table)[0]
  if (firstRow) listLinks(firstRow)[0].tabIndex = 0
}
function moveFocus(from, to) {
  if (!to) return
  from.tabIndex = -1
  to.tabIndex = 0
  to.focus()
}
function findNeighbor(row, link, step) {
  const links = listLinks(row)
  return links[links.indexOf(link) + step]
}
function findLinkInColumn(row, column) {
  const links = listLinks(row)
  return links.find(link => link.closest("td, th").cellIndex >= column) ?? links.at(-1)
}
for (const table of document.querySelectorAll(".matrix")) {
  for (const link of table.querySelectorAll("tbody a, tbody summary")) link.tabIndex = -1
  updateTabStop(table)
  table.addEventListener("keydown", event => {
    const link = event.target.closest("tbody a, tbody summary")
    if (!link || event.altKey || event.metaKey) return
    const row = link.closest("tr")
    const visibleRows = listVisibleRows(table)
    const index = visibleRows.indexOf(row)
    const column = link.closest("td, th").cellIndex
    const isWholeTable = event.ctrlKey
    const targets = {
      ArrowRight: () => findNeighbor(row, link, 1),
      ArrowLeft: () => findNeighbor(row, link, -1),
      ArrowDown: () => visibleRows[index + 1] && findLinkInColumn(visibleRows[index + 1], column),
      ArrowUp: () => visibleRows[index - 1] && findLinkInColumn(visibleRows[index - 1], column),
      Home: () => listLinks(isWholeTable ? visibleRows[0] : row)[0],
      End: () => listLinks(isWholeTable ? visibleRows.at(-1) : row).at(-1),
    }
    if (!(event.key in targets)) return
    event.preventDefault()
    moveFocus(link, targets[event.key]())
  })
  table.addEventListener("focusin", event => {
    const link = event.target.closest("tbody a, tbody summary")
    const current = table.querySelector('tbody [tabindex="0"]')
    if (link && current && current !== link) current.tabIndex = -1
    if (link) link.tabIndex = 0
  })
}
