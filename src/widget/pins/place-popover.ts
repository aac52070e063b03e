/** A rectangle in CSS pixels. */
export interface Box {
  readonly left: number;
  readonly top: number;
  readonly width: number;
  readonly height: number;
}

/** The distance between a popover and its pin, and the least distance from the edges of the window, in pixels. */
const GAP = 8;

/**
 * Where the popover of a pin goes: beside it towards the end of the line, on the other side if there is no room, else
 * below or above it; and moved as far as necessary to stay within the window.
 *
 * @param pin the pin, relative to the window
 * @param size of the popover
 * @param view the free part of the window
 * @param rtl whether text runs from right to left
 */
export function placePopover(
  pin: Box,
  size: Pick<Box, 'width' | 'height'>,
  view: Box,
  rtl: boolean,
): { left: number; top: number } {
  const after = pin.left + pin.width + GAP;
  const before = pin.left - GAP - size.width;
  const [first, second] = rtl ? [before, after] : [after, before];
  const fits = (left: number): boolean => left >= view.left + GAP && left + size.width <= view.left + view.width - GAP;
  const wanted = fits(first) || !fits(second) ? first : second;
  const bottom = view.top + view.height - size.height - GAP;
  const [below, over] = [pin.top + pin.height + GAP, pin.top - GAP - size.height];
  const beside = fits(wanted);
  return {
    left: clamp(wanted, view.left + GAP, view.left + view.width - size.width - GAP),
    top: clamp(beside ? pin.top : below <= bottom || over < view.top + GAP ? below : over, view.top + GAP, bottom),
  };
}

function clamp(value: number, least: number, most: number): number {
  return Math.max(least, Math.min(value, most));
}
