/** The size of a pin, in pixels; its lower left corner (lower right from right to left) is the place that it marks. */
export const PIN_SIZE = 32;

/** A place, in CSS pixels. */
export interface Point {
  readonly x: number;
  readonly y: number;
}

/**
 * Where a place on the page is in the window.
 *
 * @param place relative to the corner of the root element of the page
 * @param corner where that is in the window, as it was measured last: to measure it would lay out what is rendered just
 *   now, and browsers keep the scroll position of a list only as long as that happens once
 */
export function inWindow(place: Point, corner: Point): Point {
  return { x: corner.x + place.x, y: corner.y + place.y };
}
