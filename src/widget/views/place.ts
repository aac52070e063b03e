import { noChange } from 'lit';
import { Directive, directive, type ElementPart } from 'lit/directive.js';

/**
 * Moves an element to a place, in CSS pixels, through the custom properties `--x` and `--y`. A `style` attribute would
 * be refused by a strict Content-Security-Policy.
 */
export function setPlace({ style }: HTMLElement, x: number, y: number): void {
  style.setProperty('--x', `${Math.round(x * 10) / 10}px`);
  style.setProperty('--y', `${Math.round(y * 10) / 10}px`);
}

class PlaceDirective extends Directive {
  override render(_x: number, _y: number): symbol {
    return noChange;
  }

  override update(part: ElementPart, [x, y]: [number, number]): symbol {
    setPlace(part.element as HTMLElement, x, y);
    return noChange;
  }
}

/** `<div ${place(x, y)}>` does it within a template. */
export const place = directive(PlaceDirective);
