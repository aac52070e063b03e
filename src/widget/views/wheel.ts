/** Pixels of a line, for wheels that count in lines: as Chromium has it. */
const LINE_PX = 16;

/**
 * Scrolls the list of a panel by a wheel that turns anywhere on the panel, so that its head does not scroll the page
 * behind it. Call it with the wheel events of the panel. What the browser scrolls by itself, in the list, and zooms
 * stay.
 */
export function scrollList(event: WheelEvent): void {
  const { target, currentTarget, deltaY, deltaMode } = event;
  const list = (currentTarget as Element).querySelector('.list, collab-comments-settings');
  if (event.ctrlKey || list === null) return;
  const scrolls = list.scrollHeight > list.clientHeight;
  if (scrolls && list.contains(target as Element)) return;
  event.preventDefault();
  const unit = [1, LINE_PX, list.clientHeight][deltaMode] ?? 1;
  list.scrollBy({ top: deltaY * unit, behavior: 'instant' });
}
