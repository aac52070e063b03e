/** The least distance of a menu from what it belongs to, in pixels. */
const GAP = 4;

/**
 * Shows a menu beside the buttons or the field that it belongs to, on the other side if there is no room; or moves it
 * there if it is shown. It goes to the top layer, where nothing clips it, and ends with its element.
 *
 * @param side where it goes if there is room: `below` ends where the buttons end, `above` begins where the field begins
 */
export function openMenu(menu: HTMLElement, anchor: HTMLElement, side: 'below' | 'above' = 'below'): void {
  menu.popover = 'manual';
  if (!menu.matches(':popover-open')) menu.showPopover();
  const { left, right, top, bottom } = anchor.getBoundingClientRect();
  const { offsetWidth: width, offsetHeight: height } = menu;
  const x = (getComputedStyle(menu).direction === 'rtl') === (side === 'below') ? left : right - width;
  const [above, below] = [top - GAP - height, bottom + GAP];
  const wanted = side === 'above' && above >= GAP ? above : below;
  const y = wanted + height <= innerHeight ? wanted : above;
  menu.style.setProperty('--x', `${Math.max(GAP, Math.min(x, innerWidth - width - GAP))}px`);
  menu.style.setProperty('--y', `${Math.max(GAP, y)}px`);
}
