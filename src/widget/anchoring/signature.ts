import { shorten, textOf } from './text.ts';

/** At most this many attributes are stored, each with at most this many characters. */
const MAX_ATTRIBUTES = 8;
const MAX_VALUE = 64;
/** An element with more descendants is recognized by its text and its own attributes alone. */
const MAX_DESCENDANTS = 12;
/** Attributes that say what an element is. */
const TELLING = ['alt', 'name', 'aria-label', 'title', 'href', 'placeholder', 'for', 'type', 'role'];
/** `data-*` attributes of states and counts, which change while the element stays the same. */
const VOLATILE =
  /state|status|select|active|open|index|load|theme|hover|focus|visible|expand|check|count|style|rotat|moved|press|drag|pos|width|height|react|v-|test$|time/;
/** Attributes of ancestors that say which row of a list it is. */
const ROW_KEY = /^data-(?:.*-)?(?:id|key|row|uuid|sku|slug)$/;
/** Classes of icon fonts, which say what the icon is. */
const ICON_CLASS = /^(?:fa|bi|mdi|ti|ri|la|icon|glyphicon|pi|feather|octicon)-|icon-/;
/** At most this many shapes of a picture are read. */
const MAX_SHAPES = 200;
const SHAPES = new Set(['rect', 'circle', 'ellipse', 'line', 'path', 'polygon', 'polyline', 'use', 'image']);
const GEOMETRY = ['d', 'points', 'x', 'y', 'x1', 'y1', 'cx', 'cy', 'width', 'height', 'r'];

/** What tells an element besides its text, by name. Values are at most 64 characters. */
export function attributesOf(element: Element): Record<string, string> {
  const found: Record<string, string> = {};
  const add = (name: string, value: string | null | undefined): void => {
    const short = shorten(value ?? '', MAX_VALUE);
    if (short !== '' && Object.keys(found).length < MAX_ATTRIBUTES) found[name] = short;
  };
  for (const name of TELLING) add(name, element.getAttribute(name));
  add('src', fileName(element.getAttribute('src')));
  if (
    element.localName === 'button' ||
    (element.localName === 'input' &&
      /^(?:button|submit|reset|radio|checkbox)$/.test(element.getAttribute('type') ?? ''))
  ) {
    add('value', element.getAttribute('value'));
  }
  for (const { name, value } of element.attributes) {
    if (
      name.startsWith('data-') &&
      name.length <= 40 &&
      !VOLATILE.test(name) &&
      !/^(?:true|false|on|off|\d{0,3})$/.test(value)
    )
      add(name, value);
  }
  if (SHAPES.has(element.localName) && Object.keys(found).length === 0 && textOf(element) === '')
    add('shape', shapeIn(element));
  add('inside', inside(element));
  return found;
}

/** The attributes of a list's row around an element, or of itself, that name it; null if it is in none. */
export function rowKeyOf(element: Element): readonly [string, string] | null {
  for (let at: Element | null = element; at !== null && at !== at.ownerDocument.body; at = at.parentElement) {
    for (const { name, value } of at.attributes) {
      if (
        !ROW_KEY.test(name) ||
        value === '' ||
        value.length > MAX_VALUE ||
        (name === 'data-row' && /^\d{1,4}$/.test(value))
      )
        continue;
      return [name, value];
    }
  }
  return null;
}

/** A shape without a name is recognized by its whole picture: bars of a chart change places. */
function shapeIn(element: Element): string {
  const geometry = (each: Element): string => GEOMETRY.map((name) => each.getAttribute(name) ?? '').join(' ');
  const whole = [...(element.closest('svg') ?? element).querySelectorAll([...SHAPES].join())].slice(0, MAX_SHAPES);
  return `${digest(geometry(element))} ${digest(whole.map(geometry).join('|'))}`;
}

/** What the pictures and icons within a small element are. */
function inside(element: Element): string {
  const all = element.getElementsByTagName('*');
  const icons = (each: Element): string => [...each.classList].filter((name) => ICON_CLASS.test(name)).join(' ');
  if (all.length > MAX_DESCENDANTS) return '';
  const parts = [...all].map((each) =>
    [
      fileName(each.getAttribute('src')),
      ...['alt', 'aria-label', 'href', 'xlink:href', 'name'].map((name) => each.getAttribute(name)),
      digest(each.getAttribute('d')),
      icons(each),
    ]
      .filter(Boolean)
      .join(' '),
  );
  return [icons(element), ...parts].filter((part) => part !== '').join('|');
}

/** The last part of the path of an address; of data in the address, its end. */
function fileName(address: string | null): string {
  if (address === null) return '';
  return address.startsWith('data:') ? digest(address) : (/[^/]*$/.exec(address.replace(/[?#].*$/, ''))?.[0] ?? '');
}

/** A short stand-in for a long value, such as the path of an icon (FNV-1a). */
function digest(value: string | null): string {
  if (value === null) return '';
  let hash = 0x811c9dc5;
  for (let at = 0; at < value.length; at += 1) hash = Math.imul(hash ^ value.charCodeAt(at), 0x01000193);
  return (hash >>> 0).toString(36);
}
