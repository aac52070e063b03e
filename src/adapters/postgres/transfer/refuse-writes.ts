/** The SQLSTATE of commits that are refused because the store is moved to another one. */
export const MOVED_STATE = 'CM001';

/**
 * SQL that refuses every commit of a store from now on. Each commit has a row of its own in `commits`. Creating the
 * trigger waits for the commits that have theirs already, and those that come later find it, whatever process they are
 * of: so nothing is confirmed any more once this is committed.
 */
export const REFUSE_WRITES = `
create or replace function collab.refuse_commit() returns trigger language plpgsql as $$
begin
  raise exception 'the data of this store is being moved to another store, or was' using errcode = '${MOVED_STATE}';
end $$;
drop trigger if exists moved on collab.commits;
create trigger moved before insert on collab.commits for each row when (not new.claimed)
  execute function collab.refuse_commit()`;

/** SQL that takes that back. */
export const ALLOW_WRITES = 'drop trigger if exists moved on collab.commits';

/**
 * SQL that makes processes that have the database open take it for another one, as after a restore: they have the old
 * epoch in memory, and start again.
 */
export const RECREATE_META = `
alter table collab.meta rename to meta_before;
create table collab.meta (like collab.meta_before including all);
insert into collab.meta select * from collab.meta_before;
drop table collab.meta_before`;
