/**
 * The tables of shared memory. They are unlogged: what they hold may be lost with the machine, so nothing of it is
 * written to the log of PostgreSQL, and no commit waits for a disk. A recovery from a crash empties them, which ends
 * all leases. Every key, name and owner is compared byte by byte, whatever the collation of the database is.
 *
 * The free space that `fillfactor` leaves is for updates in place, which touch no index (HOT) and need no vacuum.
 */
export const TABLES = `
-- Allowed hits by key: the times of up to 128, oldest first. "before" counts the hits of the rows before it.
create unlogged table if not exists collab.shared_windows (
  key text collate "C",
  before bigint,
  times float8[] not null,
  primary key (key, before)
) with (fillfactor = 50, toast_tuple_target = 4080);
-- The time at which a budget is full again.
create unlogged table if not exists collab.shared_budgets (
  key text collate "C" primary key,
  full_at float8 not null
) with (fillfactor = 70);
-- A lease that has ended is kept while records of it are shown as nobody's.
create unlogged table if not exists collab.shared_leases (
  lease bigint primary key,
  owner text collate "C" not null,
  ends_at float8 not null,
  keep_until float8
) with (fillfactor = 50);
create index if not exists shared_leases_owner on collab.shared_leases (owner);
create unlogged table if not exists collab.shared_counts (
  key text collate "C",
  lease bigint,
  count bigint not null,
  primary key (key, lease)
) with (fillfactor = 70);
-- "lease" is null for nobody's records, "expires_at" for those that do not expire by themselves.
create unlogged table if not exists collab.shared_records (
  key text collate "C",
  name text collate "C",
  lease bigint,
  text text collate "C" not null,
  put_at float8 not null,
  expires_at float8,
  primary key (key, name)
) with (fillfactor = 70);
-- The last batch of each process, with the answers to the calls that wrote: a batch that is sent again has no effect.
create unlogged table if not exists collab.shared_senders (
  sender bigint primary key,
  batch bigint not null,
  answers text[] not null,
  sent_at float8 not null
) with (fillfactor = 50);
-- One row: how far the time of the memory is ahead of the clock of the machine, and a time that it has passed.
create unlogged table if not exists collab.shared_clock (
  one boolean primary key check (one),
  memory bigint not null,
  ahead float8 not null,
  passed float8 not null
) with (fillfactor = 50);
`;
