/** Maximum number of rows that one call of the function deletes from a table: batches may wait for them so long. */
export const SWEPT_ROWS = 1_000;

const sweep = (table: string, condition: string): string => `
  delete from collab.shared_${table} where ctid = any (array(
    select g.ctid from collab.shared_${table} g where ${condition} limit ${SWEPT_ROWS} for update skip locked));
  get diagnostics _deleted = row_count;
  _most := greatest(_most, _deleted);`;

/**
 * The function that deletes what is not shown. It waits for no lock: what a batch works on at the moment is no garbage,
 * or garbage of the next sweep. It returns the number of rows that it has deleted from the table with the most of them:
 * if that is `SWEPT_ROWS`, there may be more.
 */
export const SWEEP_FUNCTION = `
create or replace function collab.shared_sweep_1(_idle float8, _given float8) returns int language plpgsql as $body$
declare
  _now float8;
  _deleted int;
  _most int := 0;
begin
  select coalesce(_given, date_part('epoch', clock_timestamp()) * 1000 + c.ahead) into _now from collab.shared_clock c;
  -- Two workers may sweep at once while one takes the background work over from another.
  if not found or not pg_try_advisory_xact_lock(1129270349) then
    return 0;
  end if;
${[
  sweep(
    'windows',
    `g.times[cardinality(g.times)] < _now - _idle and not exists (
      select from collab.shared_windows n
      where n.key = g.key and n.before > g.before and n.times[cardinality(n.times)] >= _now - _idle)`,
  ),
  sweep('budgets', 'g.full_at < _now - _idle'),
  sweep(
    'counts',
    `g.count = 0 or not exists (
      select from collab.shared_leases l where l.lease = g.lease and l.ends_at > _now)`,
  ),
  sweep(
    'records',
    `g.expires_at <= _now or g.lease is not null and not exists (
      select from collab.shared_leases l where l.lease = g.lease and greatest(l.ends_at, l.keep_until) > _now)`,
  ),
  sweep('leases', 'g.ends_at <= _now and coalesce(g.keep_until, 0) <= _now'),
  sweep('senders', 'g.sent_at < _now - 3600000'),
].join('')}
  return _most;
end
$body$;
`;
