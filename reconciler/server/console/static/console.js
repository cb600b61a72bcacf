// The scripts of the console. Every page and action works without them.

const main = () => document.getElementById("content");
const isTyping = (element) => element.matches("input:not([type=checkbox]), textarea, select, [contenteditable]");
const store = {
  get(key) { try { return localStorage.getItem(key) } catch { return null } },
  set(key, value) { try { localStorage.setItem(key, value) } catch { /* The browser stores nothing. */ } },
};

// New data: replace the content, unless a person is selecting or typing. The version of the content changes only if the
// parts of the fleet change that the page shows.

let seenVersion = main().dataset.version;
let stream = null;
let hiddenSince = 0;

function isBusy() {
  const active = document.activeElement;
  return (active && main().contains(active) && active.matches("input, textarea, select")) || main().querySelector("form.confirm") ||
    main().querySelector("input[data-changed], input[name=row]:checked, input[name=on]:checked") || document.querySelector("dialog[open]") || String(getSelection()) !== "";
}

function request(target, selectOOB) {
  return htmx.ajax("GET", location.pathname + location.search, {
    target, select: target, selectOOB, swap: "outerHTML",
    // The person can be away, so this request does not extend the session.
    headers: { "X-Automatic": "1" },
  });
}

async function refresh() {
  document.getElementById("news").hidden = true;
  const opened = [...main().querySelectorAll("details[id][open]")].map((details) => details.id);
  const focused = main().contains(document.activeElement) ? document.activeElement.getAttribute("href") : null;
  await request("#content", "#pass,#pages,#stale");
  for (const id of opened) document.getElementById(id)?.setAttribute("open", "");
  if (focused) main().querySelector(`a[href="${CSS.escape(focused)}"]`)?.focus();
}

// The page of a change, target or package that does not exist any more has an error status. Show this page.
document.body.addEventListener("htmx:beforeSwap", ({ detail }) => {
  if (detail.target !== main() || ![404, 410].includes(detail.xhr.status)) return;
  detail.shouldSwap = true;
  detail.isError = false;
});

let updateCount = 0;
function announce(version) {
  if (version === seenVersion || version === main().dataset.version) return;
  seenVersion = version;
  if (!isBusy()) return void refresh();
  const news = document.getElementById("news");
  updateCount = news.hidden ? 1 : updateCount + 1;
  news.querySelector("span").textContent = updateCount === 1 ? "1 update." : `${updateCount} updates.`;
  news.hidden = false;
}

// A pass without changes has no new data, so only the header and the age of old data change.
function showPass({ passAt, passResult }) {
  const time = document.querySelector("#pass time");
  if (!time || !passAt) return;
  time.dateTime = time.title = passAt;
  const result = document.querySelector("#pass [data-result]");
  const hasOtherResult = result.textContent !== passResult;
  result.textContent = passResult;
  updateTimes();
  if (hasOtherResult) request("#stale");
}

function showChangeCount(count) {
  const number = document.querySelector("#pages [data-change-count]");
  number.textContent = count;
  number.parentElement.hidden = !count;
}

let offlineSince = null;
function setLive(isLive) {
  document.getElementById("offline").hidden = isLive;
  offlineSince = isLive ? null : offlineSince ?? Date.now();
}

// The text of the counts is replaced in place, so that screen readers announce it.
async function showJob({ state, ...counts }) {
  const status = main().querySelector("[data-job]");
  if (!status) return;
  const text = ["done", "skipped", "failed", "waiting"].map((name) => `${counts[name]} ${name}`).join(" · ");
  if (state !== status.dataset.state) await refresh();
  else if (status.textContent !== text) {
    status.textContent = text;
    await request("#results");
  }
}

// Without a stream, the page of a running job requests its results.
setInterval(() => {
  if (offlineSince !== null && main().querySelector("[data-job]")) refresh().catch(() => setLive(false));
}, 5000);

function openStream() {
  const job = main().querySelector("[data-job]")?.dataset.job;
  const topics = main().dataset.topics + (job ? `,job:${job}` : "");
  stream = new EventSource(`/events?topics=${encodeURIComponent(topics)}`);
  stream.addEventListener("job", (event) => showJob(JSON.parse(event.data)));
  stream.addEventListener("view", (event) => {
    const data = JSON.parse(event.data);
    setLive(true);
    showPass(data);
    showChangeCount(data.changes);
    announce(data.version);
  });
  stream.onerror = () => setLive(false);
  stream.onopen = () => setLive(true);
}

setInterval(() => {
  if (offlineSince === null || document.hidden) return;
  // After an error status, for example at the end of the session, the browser does not connect again.
  if (stream?.readyState === EventSource.CLOSED) openStream();
  // A request that fails leaves the page as it is, with its banner.
  if (Date.now() - offlineSince >= 60000 && !isBusy()) refresh().catch(() => setLive(false));
}, 30000);

// Browsers open at most six connections to a host, so a hidden tab closes its stream.
document.addEventListener("visibilitychange", () => {
  if (document.hidden) {
    hiddenSince = Date.now();
    setTimeout(() => {
      if (document.hidden && stream && Date.now() - hiddenSince >= 9000) { stream.close(); stream = null }
    }, 10000);
  } else if (!stream) {
    openStream();
  }
});
addEventListener("pagehide", () => stream?.close());
document.getElementById("news").querySelector("button").addEventListener("click", refresh);
document.addEventListener("change", (event) => {
  if (event.target.matches("form.review input")) event.target.dataset.changed = "";
});

// The end of the session: a warning with a button that extends the session (WCAG 2.2.1).

const warningSeconds = 300;
const sessionBanner = document.getElementById("session");

let sessionTimer = null;

function showSession(seconds, isExtended) {
  const isEnding = seconds <= warningSeconds;
  const button = sessionBanner.querySelector("button");
  // A session that ends although the person is active is 24 hours old.
  button.hidden = isEnding && (isExtended || !seconds);
  sessionBanner.querySelector("span").textContent =
    !seconds ? "Your session has ended. Load the page to sign in again."
      : "Your session ends in less than 5 minutes." + (button.hidden ? " Then sign in again." : "");
  sessionBanner.hidden = !isEnding;
  clearTimeout(sessionTimer);
  if (seconds) sessionTimer = setTimeout(checkSession, (isEnding ? seconds : seconds - warningSeconds) * 1000);
}

async function checkSession(event) {
  // Other tabs can have extended the session. Here, only the button extends it.
  const response = await fetch("/sign-in/session", { headers: event ? {} : { "X-Automatic": "1" } }).catch(() => null);
  if (response) showSession(response.ok ? (await response.json()).seconds : 0, Boolean(event));
}

if (document.body.dataset.session) {
  sessionBanner.querySelector("button").addEventListener("click", checkSession);
  showSession(Number(document.body.dataset.session), true);
}

// Times: the server writes the age at the time of the page.

const units = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]];
function updateTimes() {
  for (const element of document.querySelectorAll("time[datetime]:not([data-absolute])")) {
    const age = Math.max(Math.floor((Date.now() - Date.parse(element.dateTime)) / 1000), 0);
    const [size, unit] = units.find(([size]) => age >= size) ?? units.at(-1);
    element.textContent = `${Math.floor(age / size)} ${unit}${"age" in element.dataset ? "" : " ago"}`;
  }
}
setInterval(updateTimes, 30000);

// Buttons that copy a location. Browsers allow this only on this machine or with TLS.

function addCopyButtons() {
  if (!navigator.clipboard) return;
  for (const text of main().querySelectorAll("code[data-copy]:not([data-copy=added])")) {
    const button = document.createElement("button");
    text.dataset.copy = "added";
    button.type = "button";
    button.className = "copy";
    button.textContent = "Copy";
    button.setAttribute("aria-label", `Copy ${text.textContent}`);
    button.addEventListener("click", async () => {
      try {
        await navigator.clipboard.writeText(text.textContent);
      } catch {
        // The person has not allowed it: select the text instead.
        getSelection().selectAllChildren(text);
        return;
      }
      button.textContent = "Copied";
      button.setAttribute("aria-label", `Copied ${text.textContent}`);
    });
    text.after(" ", button);
  }
}

// Marks of viewed resources. A mark is lost when the content of the resource changes.

function addViewedMarks() {
  for (const resource of main().querySelectorAll("details.resource[data-content]")) {
    if (resource.querySelector(".viewed")) continue;
    const key = `viewed:${resource.dataset.content}`;
    const label = document.createElement("label");
    const box = document.createElement("input");
    label.className = "viewed";
    box.type = "checkbox";
    box.checked = store.get(key) === "yes";
    label.append(box, " viewed");
    box.addEventListener("change", () => {
      store.set(key, box.checked ? "yes" : "no");
      resource.open = !box.checked;
    });
    if (box.checked) resource.open = false;
    resource.querySelector("summary").after(label);
  }
}

// The appearance: a choice applies at once. The form sends it to the server, which stores it in a cookie.

document.querySelector(".appearance form").addEventListener("change", (event) => {
  document.documentElement.dataset[event.target.name] = event.target.value;
});

// The time of the last visit: the browser stores it, and a link selects newer changes.

const VISIT_SECONDS = 1800;
function showLastVisit() {
  const link = main().querySelector("a[data-last-visit]");
  if (!link) return;
  const now = Math.floor(Date.now() / 1000);
  // Requests within half an hour are one visit.
  if (now - Number(store.get("visit:latest") ?? 0) > VISIT_SECONDS) store.set("visit:before", store.get("visit:latest") ?? "");
  store.set("visit:latest", String(now));
  const before = store.get("visit:before");
  if (!before && !link.hasAttribute("aria-current")) return;
  link.parentElement.hidden = false;
  if (link.hasAttribute("aria-current")) return;
  const url = new URL(link.href);
  url.searchParams.set("since", before);
  link.href = url;
}

// The selection of rows. Without scripts, a link of the page selects all rows.

let lastSelected = null;

function getRowBoxes() {
  return [...main().querySelectorAll("form.selection input[name=row]")];
}

function showSelection() {
  const boxes = getRowBoxes();
  const count = boxes.filter((box) => box.checked).length;
  const output = main().querySelector("[data-selected-count]");
  if (!output) return;
  output.hidden = false;
  output.textContent = `${count} selected`;
  const all = main().querySelector("[data-all-rows]");
  all.checked = count === boxes.length;
  all.indeterminate = count > 0 && count < boxes.length;
}

function addPageSelection() {
  const link = main().querySelector("a[data-select-page]");
  if (link) {
    const label = document.createElement("label");
    const box = document.createElement("input");
    box.type = "checkbox";
    box.dataset.allRows = "";
    label.append(box, ` Select page (${getRowBoxes().length})`);
    box.addEventListener("change", () => {
      for (const row of getRowBoxes()) row.checked = box.checked;
      showSelection();
    });
    link.replaceWith(label);
  }
  showSelection();
}

document.addEventListener("change", (event) => {
  if (!event.target.matches("form.selection input[name=row]")) return;
  lastSelected = event.target;
  showSelection();
});

function findBox() {
  // The nearest row with a checkbox: a row can contain other rows.
  for (let row = document.activeElement; row && row !== main(); row = row.parentElement) {
    const box = row.matches("li, tr, details, label") && row.querySelector("input[type=checkbox]");
    if (box) return box;
  }
  return null;
}

function selectRange() {
  const boxes = getRowBoxes();
  const [from, to] = [boxes.indexOf(lastSelected), boxes.indexOf(findBox())];
  if (to < 0) return;
  if (from < 0) return boxes[to].click();
  const { checked } = lastSelected;
  for (const box of boxes.slice(Math.min(from, to), Math.max(from, to) + 1)) box.checked = checked;
  lastSelected = boxes[to];
  showSelection();
}

// Keys.

const pages = { f: "/", c: "/changes", t: "/targets", i: "/findings", a: "/activity", s: "/system" };
let isAfterG = false;

function move(selector, step) {
  const items = [...main().querySelectorAll(selector)];
  if (!items.length) return;
  const current = items.findIndex((item) => item.contains(document.activeElement));
  const next = items[Math.min(Math.max(current + step, 0), items.length - 1)];
  const focusable = next.matches("a, summary, button") ? next : next.querySelector("a") ?? next.querySelector("summary, button, input");
  focusable?.focus();
  next.scrollIntoView({ block: "nearest" });
}

function foldResources(event) {
  const state = event.target.closest("a[data-fold]")?.dataset.fold;
  if (!state) return;
  event.preventDefault();
  for (const resource of main().querySelectorAll("details.resource")) resource.open = state === "open";
}
document.addEventListener("click", foldResources);

function press(...selectors) {
  // The first selector with an element wins, and not the first element.
  const found = selectors.map((selector) => main().querySelector(selector)).find(Boolean);
  found?.click();
}

function selectStage(number) {
  const select = main().querySelector("form.review select[name=stage]");
  if (select?.options[number]) select.selectedIndex = number;
}

// The command palette: a dialog with the first results of the search.

const palette = document.getElementById("palette");

function openPalette() {
  if (palette.open) return;
  for (const dialog of document.querySelectorAll("dialog[open]")) dialog.close();
  palette.showModal();
  const text = document.getElementById("palette-text");
  text.select();
  htmx.trigger(text, "open");
}

palette.addEventListener("keydown", (event) => {
  const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
  if (!step) return;
  event.preventDefault();
  const items = [document.getElementById("palette-text"), ...palette.querySelectorAll("#palette-results a")];
  const next = items.indexOf(document.activeElement) + step;
  items[(next + items.length) % items.length].focus();
});

// Review actions: a dialog shows the confirmation, and the reasons why an action is not possible. Any other page, such
// as the page with the results, replaces the current page.

const reviewDialog = document.getElementById("review-dialog");
const review = document.getElementById("review");
const isReviewForm = (element) => element.getAttribute?.("hx-target") === "#review";

document.body.addEventListener("htmx:beforeSwap", ({ detail }) => {
  if (detail.target !== review) return;
  const { responseURL } = detail.xhr;
  detail.shouldSwap = /^\/(changes\/confirm$|confirmations\/)/.test(new URL(responseURL).pathname);
  // A confirmation with an error has an error status, and is not a failure of the request.
  detail.isError = !detail.shouldSwap;
  if (!detail.shouldSwap) location.assign(responseURL);
});
document.body.addEventListener("htmx:afterSwap", ({ detail }) => {
  if (detail.target !== review) return;
  if (!review.childElementCount) review.textContent = `The action failed with status ${detail.xhr.status}. Try again.${formatRequestId(detail.xhr)}`;
  if (!reviewDialog.open) reviewDialog.showModal();
});
document.body.addEventListener("htmx:sendError", ({ detail }) => {
  if (!isReviewForm(detail.elt)) return;
  review.textContent = "The service does not respond, so the result of the action is unknown. Try again.";
  if (!reviewDialog.open) reviewDialog.showModal();
});
// The browser returns the focus to the button that has opened the dialog.
reviewDialog.addEventListener("close", () => review.replaceChildren());

// Parts of a page that load: the style sheet shows a placeholder, and a failed part has a message with a button.

function formatRequestId(xhr) {
  const id = xhr.getResponseHeader("X-Request-Id");
  return id ? ` Request ID: ${id}.` : "";
}

const isAutomatic = (detail) => "X-Automatic" in detail.requestConfig.headers;

document.body.addEventListener("htmx:beforeRequest", ({ detail }) => {
  if (isAutomatic(detail)) return;
  detail.target.setAttribute("aria-busy", "true");
  detail.target.querySelector(":scope > .part-error")?.remove();
});
document.body.addEventListener("htmx:afterRequest", ({ detail }) => detail.target.removeAttribute("aria-busy"));

function showPartError({ detail }) {
  const { elt, target, xhr, pathInfo } = detail;
  if (isAutomatic(detail) || isReviewForm(elt)) return;
  const message = document.createElement("p");
  const button = document.createElement("button");
  message.className = "banner error part-error";
  message.setAttribute("role", "alert");
  message.textContent = xhr.status ? `This part cannot be loaded (status ${xhr.status}).${formatRequestId(xhr)} ` : "This part cannot be loaded, because the service does not respond. ";
  button.type = "button";
  button.textContent = "Try again";
  // If the request fails again, htmx reports an event, and this function shows the new message.
  button.addEventListener("click", () => htmx.ajax("GET", pathInfo.requestPath, { source: elt }).catch(() => {}));
  message.append(button);
  const title = target.querySelector(":scope > summary, :scope > h1, :scope > h2");
  if (title) title.after(message); else target.prepend(message);
}
document.body.addEventListener("htmx:responseError", showPartError);
document.body.addEventListener("htmx:sendError", showPartError);

const commands = {
  "/": openPalette,
  j: () => move(".rows > li, .cards tbody tr", 1),
  k: () => move(".rows > li, .cards tbody tr", -1),
  n: () => move("details.resource", 1),
  p: () => move("details.resource", -1),
  "]": () => press("a[data-next-target]"),
  "[": () => press("a[data-previous-target]"),
  u: () => press("a[data-other-view]"),
  v: () => { document.activeElement.closest("details.resource")?.querySelector(".viewed input")?.click(); move("details.resource", 1) },
  x: () => findBox()?.click(),
  X: selectRange,
  a: () => press("button[value=approve]"),
  r: () => press("button[value=reject]"),
  o: () => press("button[value=propose]"),
  A: () => press("button[data-only][value=approve]"),
  R: () => press("button[data-only][value=reject]"),
  O: () => press("button[data-only][value=propose]"),
  e: () => press("[aria-labelledby=checks] a", "[aria-labelledby=blocked] a"),
  f: () => main().querySelector("form.filter input[type=search]")?.focus(),
  h: () => press("a[data-history]"),
  ".": () => press("[data-main-action]", "[data-effective] a, [data-effective] .copy", ".copy"),
  "?": () => document.getElementById("keys").showModal(),
};

function findCommand(event) {
  if (isAfterG && pages[event.key]) return () => { location.href = pages[event.key] };
  if (/^[1-9]$/.test(event.key)) return () => selectStage(Number(event.key));
  // On a link or button, the browser handles the key.
  const hasFocus = event.target !== document.body && event.target !== main();
  if (event.key === "Enter") return hasFocus ? null : () => press("a[data-first]", ".rows > li a, .cards tbody a");
  return commands[event.key];
}

document.addEventListener("keydown", (event) => {
  if ((event.ctrlKey || event.metaKey) && event.key === "k") {
    event.preventDefault();
    commands["/"]();
    return;
  }
  if ((event.ctrlKey || event.metaKey) && event.key === "Enter") {
    event.target.closest("form.confirm")?.requestSubmit();
    return;
  }
  if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target) || store.get("keys") === "off") return;
  // Only the keys of the browser control an open dialog.
  if (document.querySelector("dialog[open]")) return;
  const command = findCommand(event);
  isAfterG = event.key === "g";
  if (command) {
    event.preventDefault();
    command();
  }
});

const keysSwitch = document.getElementById("keys-off");
keysSwitch.checked = store.get("keys") === "off";
keysSwitch.addEventListener("change", () => store.set("keys", keysSwitch.checked ? "off" : "on"));

function prepare() {
  addPageSelection();
  showLastVisit();
  addViewedMarks();
  addCopyButtons();
  updateTimes();
}

document.body.addEventListener("htmx:afterSwap", prepare);
prepare();
openStream();
