// The life of a task as rows: a window over its events, which may be many more than a page can hold.
// The window opens at the end and follows it. Scrolling up reads older events and drops the newest rows, scrolling down the
// other way round; the server has all of them under their numbers.

import { follow, readEvents, untilAnswered } from './api.js';
import { every } from './connection.js';
import { button, h, setText } from './dom.js';
import { count } from './format.js';
import { RowMaker } from './timeline_rows.js';

/** Events that are read at a time, and what the window holds at most. */
const STEP = 300;
const MOST_ROWS = 400;
const MOST_EVENTS = 4000;

export class Timeline {
  /** `hooks`: links for rows, `total()` for the number of the last event, `onEvent(event)` for each live event, `onRows()` after rows have changed, `onError(failure)`. */
  constructor(task, signal, hooks) {
    this.task = task;
    this.signal = signal;
    this.hooks = hooks;
    this.rows = [];
    this.total = 0;
    this.last = 0;
    this.follows = true;
    /** Which window this is: what was read for an earlier one has no place in it. */
    this.generation = 0;
    this.list = h('ol.timeline', { 'aria-label': 'Events' });
    this.older = button('Older events', () => this.loadOlder(), { class: 'edge', hidden: true });
    this.newer = button('Newer events', () => this.loadNewer(), { class: 'edge', hidden: true });
    this.place = h('span.place', { 'data-window': '' }, '…');
    this.followButton = button('Follow', () => (this.follows ? this.#setFollows(false) : this.toEnd()), { 'aria-pressed': 'true', class: 'toggle' });
    this.goTo = h('input', { type: 'number', min: 1, placeholder: 'event', 'aria-label': 'Go to event', class: 'go-to' });
    this.toolbar = h('div.toolbar', this.place, h('span.spring'),
      h('form', { onsubmit: (event) => {
        event.preventDefault();
        if (this.goTo.value) hooks.goTo(Math.max(1, Math.min(this.total, Number(this.goTo.value))));
      } }, this.goTo),
      button('First', () => hooks.goTo(1)), button('Last', () => this.toEnd()), this.followButton);
    this.element = h('section', { 'aria-label': 'Timeline', class: 'events' }, this.toolbar, this.older, this.list, this.newer);
    this.#watchScroll();
  }

  /** Shows the end, or what follows from event number `from`. */
  async open(from, total) {
    this.generation += 1;
    const mine = this.generation;
    this.#setFollows(!from);
    let known;
    let start;
    const events = await this.#read(async () => {
      known = total ?? await this.hooks.total();
      start = from ? Math.min(from, known) - 1 : Math.max(0, known - STEP);
      return readEvents(this.task, start, Math.min(known, start + STEP), this.signal);
    });
    if (this.signal.aborted || mine !== this.generation) return;
    // What was shown stays until there is something else to show.
    this.#clear();
    this.total = known;
    // A link to an event stays at it until one scrolls.
    this.isLinked = Boolean(from);
    this.first = start + 1;
    this.last = start;
    this.#append(events);
    if (from) {
      this.rows[0]?.node.classList.add('linked');
      this.rows[0]?.node.scrollIntoView({ block: 'start' });
    }
    if (this.last >= this.total) this.#attach();
    else this.#detach();
    if (this.follows) this.#scrollToEnd();
  }

  async toEnd() {
    this.#setFollows(true);
    try {
      if (this.isDetached) await this.open();
    } catch (failure) {
      if (!this.signal.aborted) this.hooks.onError(failure);
    }
    if (this.follows) this.#scrollToEnd();
  }

  async loadOlder() {
    if (this.isLoading || this.first <= 1 || !this.rows.length) return;
    this.isLoading = true;
    const mine = this.generation;
    try {
      const upto = this.first - 1;
      const events = await this.#read(() => readEvents(this.task, Math.max(0, upto - STEP), upto, this.signal));
      // Meanwhile this may be another window, or have lost its first rows: then these events would leave a gap.
      if (!events.length || this.signal.aborted || mine !== this.generation || upto !== this.first - 1) return;
      const maker = new RowMaker(this.hooks);
      const rows = [];
      for (const event of events) {
        const { row, isNew } = maker.add(event);
        if (isNew) rows.push(row);
      }
      for (const row of rows) if (row.isDirty) row.render();
      const page = document.documentElement;
      const below = page.scrollHeight - window.scrollY;
      this.list.prepend(...rows.map((row) => row.node));
      this.rows.unshift(...rows);
      this.first = events[0].number;
      this.#show();
      window.scrollTo(0, page.scrollHeight - below);
      this.#trimEnd();
    } catch (failure) {
      this.hooks.onError(failure);
    } finally {
      this.isLoading = false;
      if (!this.signal.aborted) this.#lookAtEdges();
    }
  }

  async loadNewer() {
    if (this.isLoading || !this.isDetached) return;
    this.isLoading = true;
    const mine = this.generation;
    try {
      const after = this.last;
      const events = await this.#read(() => readEvents(this.task, after, Math.min(this.total, after + STEP), this.signal));
      if (this.signal.aborted || mine !== this.generation || after !== this.last) return;
      this.#append(events);
      this.#trimStart();
      if (this.last >= this.total) this.#attach();
    } catch (failure) {
      this.hooks.onError(failure);
    } finally {
      this.isLoading = false;
      if (!this.signal.aborted) this.#lookAtEdges();
    }
  }

  lastStatusRow() {
    return this.isDetached ? undefined : this.rows.findLast((row) => row.state);
  }

  #append(events) {
    const fresh = [];
    for (const event of events) {
      if (event.number <= this.last) continue;
      const { row, isNew } = this.maker.add(event);
      if (isNew) {
        this.rows.push(row);
        fresh.push(row.node);
      }
      this.last = event.number;
    }
    this.total = Math.max(this.total, this.last);
    for (const row of this.rows.slice(-50)) if (row.isDirty) row.render();
    this.list.append(...fresh);
    this.#show();
  }

  /** Takes events as they happen, from behind the last one. */
  #attach() {
    const signal = this.#renew();
    this.isDetached = false;
    let queue = [];
    let isPlanned = false;
    const flush = () => {
      isPlanned = false;
      if (signal.aborted) return;
      let events = queue;
      queue = [];
      if (this.follows && events.length > MOST_EVENTS) {
        // Nobody can have read them; they are where the older ones are.
        events = events.slice(-STEP);
        this.#clear();
        this.first = events[0].number;
        this.last = this.first - 1;
      }
      this.#append(events);
      for (const event of events) this.hooks.onEvent(event);
      if (this.follows) {
        this.#trimStart();
        this.#scrollToEnd();
      } else if (this.#isFull()) this.#detach();
    };
    follow(this.task, this.last, signal, (event) => {
      queue.push(event);
      if (isPlanned) return;
      isPlanned = true;
      if (document.hidden) setTimeout(flush, 500);
      else requestAnimationFrame(flush);
    }).catch((failure) => signal.aborted || this.hooks.onError(failure));
    this.#show();
  }

  /** The window is not at the end: only the number of the last event is looked at. */
  #detach() {
    const signal = this.#renew();
    this.isDetached = true;
    every(3000, signal, async () => {
      try {
        this.total = await this.hooks.total();
        this.#show();
      } catch {
        // The next look may know.
      }
    });
    this.#show();
  }

  /** Ends what looks at the task now; the signal is for what does next. */
  #renew() {
    this.live?.abort();
    const live = new AbortController();
    this.live = live;
    this.signal.addEventListener('abort', () => live.abort(), { signal: live.signal });
    return live.signal;
  }

  /** Another window begins; what is being read for this one comes too late. */
  #clear() {
    this.generation += 1;
    this.rows = [];
    this.list.replaceChildren();
    this.maker = new RowMaker(this.hooks);
  }

  /** Reads when the server is there, and says what it waits for meanwhile. */
  #read(act) {
    return untilAnswered(this.signal, act, (failure) => this.hooks.onWait(failure)).finally(() => this.hooks.onWait(null));
  }

  #isFull() {
    return this.rows.length > MOST_ROWS || this.last - this.first > MOST_EVENTS;
  }

  #trimStart() {
    const page = document.documentElement;
    const below = page.scrollHeight - window.scrollY;
    let isChanged = false;
    while (this.rows.length > 1 && this.#isFull()) {
      this.rows.shift().node.remove();
      this.first = this.rows[0].first;
      isChanged = true;
    }
    if (!isChanged) return;
    window.scrollTo(0, page.scrollHeight - below);
    this.#show();
  }

  #trimEnd() {
    let isChanged = false;
    while (this.rows.length > 1 && this.#isFull()) {
      this.rows.pop().node.remove();
      this.last = this.rows.at(-1).last;
      isChanged = true;
    }
    if (!isChanged) return;
    // What comes next is not joined to what was dropped.
    this.maker = new RowMaker(this.hooks);
    this.#setFollows(false);
    this.#detach();
  }

  #show() {
    this.older.hidden = this.first <= 1 || this.rows.length === 0;
    const missing = this.total - this.last;
    this.newer.hidden = !this.isDetached;
    setText(this.newer, missing > 0 ? `${count(missing)} newer events` : 'Newer events');
    if (this.rows.length) setText(this.place, `Events ${count(this.first)}–${count(this.last)} of ${count(this.total)}`);
    this.hooks.onRows();
  }

  #setFollows(follows) {
    this.follows = follows;
    this.followButton.setAttribute('aria-pressed', String(follows));
  }

  #scrollToEnd() {
    window.scrollTo(0, document.documentElement.scrollHeight);
    this.scrolled = window.scrollY;
  }

  #watchScroll() {
    this.scrolled = window.scrollY;
    window.addEventListener('wheel', (event) => {
      this.isLinked = false;
      if (event.deltaY < 0 && window.scrollY === 0) this.loadOlder();
    }, { signal: this.signal, passive: true });
    const isAtEnd = () => window.innerHeight + window.scrollY >= document.documentElement.scrollHeight - 24;
    window.addEventListener('scroll', () => {
      const isUp = window.scrollY < this.scrolled - 2;
      this.scrolled = window.scrollY;
      if (isUp && this.follows && !isAtEnd()) this.#setFollows(false);
      else if (!isUp && !this.follows && isAtEnd() && !this.isDetached) this.#setFollows(true);
    }, { signal: this.signal, passive: true });
    this.observer = new IntersectionObserver((entries) => {
      for (const { isIntersecting, target } of entries) {
        if (!isIntersecting) continue;
        if (target === this.older && !this.isLinked) this.loadOlder();
        if (target === this.newer) this.loadNewer();
      }
    }, { rootMargin: '500px 0px' });
    this.#lookAtEdges();
    this.signal.addEventListener('abort', () => this.observer.disconnect(), { once: true });
  }

  /** An edge that is still near after more has been read asks for more. */
  #lookAtEdges() {
    this.observer.disconnect();
    this.observer.observe(this.older);
    this.observer.observe(this.newer);
  }

  /** Rows that are here now get what the history says of them. */
  fillIn(fillRow) {
    for (const row of this.rows) fillRow(row);
  }
}
