// What the pages share: random changes, and the oracle, which knows which element is which whatever it looks like.
globalThis.page = (() => {
  let state = 1;
  /** A random number below `bound` (mulberry32), the same for the same seed. */
  const random = (bound) => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) % bound;
  };
  const pick = (all) => all[random(all.length)];
  const words = 'river stone market window garden letter winter copper bridge candle forest harbour kitchen ladder meadow needle orchard pepper quarry ribbon saddle timber valley whistle anchor barrel cotton dragon engine feather'.split(' ');
  const text = (count) => Array.from({ length: count }, () => pick(words)).join(' ');
  const sentence = (count) => text(count).replace(/^./, (first) => first.toUpperCase()) + '.';
  let made = 0;
  const ids = new WeakMap();
  /** Says which thing an element shows; a new one without a name. */
  const is = (element, id = `thing ${(made += 1)}`) => (ids.set(element, id), element);
  const idOf = (element) => ids.get(element);
  /** Gives every element without one an identity. */
  const name = (root) => {
    for (const element of root.querySelectorAll('*')) if (!ids.has(element)) is(element);
  };
  const parse = (html) => {
    const template = document.createElement('template');
    template.innerHTML = html;
    name(template.content);
    return template.content.firstElementChild;
  };
  /** A copy that shows the same things, as a framework makes it when it renders again. */
  const again = (element) => {
    const copy = element.cloneNode(true);
    const from = [element, ...element.querySelectorAll('*')];
    for (const [index, each] of [copy, ...copy.querySelectorAll('*')].entries()) is(each, idOf(from[index]));
    return copy;
  };
  const all = (selector) => [...document.querySelectorAll(selector)];
  const move = (element, parent) => parent.insertBefore(element, parent.children[random(parent.children.length + 1)] ?? null);
  /** The changes that every page has; `rows` are the elements that come and go, `texts` those that are edited. */
  const changes = ({ rows, texts, make }) => ({
    insert: () => {
      const at = pick(all(rows));
      if (at !== undefined) at.before(make(at));
    },
    remove: () => all(rows).length > 8 && pick(all(rows)).remove(),
    reorder: () => {
      const at = pick(all(rows));
      if (at !== undefined) move(at, at.parentElement);
    },
    edit: () => {
      const at = pick(all(texts));
      if (at === undefined || at.childElementCount > 0) return;
      const old = at.textContent.split(' ');
      if (old.length < 12) return;
      old.splice(1 + random(old.length - 2), random(2), pick(words));
      at.textContent = old.join(' ');
    },
    restyle: () => {
      const at = pick(all(`${rows}, ${texts}`));
      if (at === undefined) return;
      at.classList.toggle(`look-${random(3)}`);
      at.style.padding = `${random(12)}px`;
    },
    wrap: () => {
      const at = pick(all(rows).filter(({ localName }) => localName !== 'tr' && localName !== 'li'));
      if (at === undefined) return;
      const around = is(document.createElement('div'));
      at.replaceWith(around);
      around.append(at);
    },
    render: () => {
      const at = pick(all(rows));
      at?.replaceWith(again(at));
    },
  });
  return { seed: (value) => { state = value; }, random, pick, words, text, sentence, is, idOf, name, parse, all, move, changes };
})();
