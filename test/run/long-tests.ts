/**
 * Test files that `npm test` runs only with `--all`, as `.ci/run` does, or when they are named. They are a seventh of
 * the files and take two fifths of the time: what they are about is rare, or other files are about it, too, which each
 * group names.
 */
export const LONG_TESTS: ReadonlySet<string> = new Set(
  [
    // Processes that are killed, stopped or replaced under load. Also: cluster/crash, cluster/drain, cluster/processes,
    // cluster/two-workers, adapters/lmdb-crash.
    'adapters/killed-export',
    'adapters/killed-key-rotation',
    'cluster/code-cache',
    'cluster/hung',
    'cluster/node-core',
    'cluster/presence',
    'cluster/roll',
    'cluster/stopped-holder',
    'plugins/webhook-kills',
    'workers/notification-kills',

    // Disks that are full or fail. Also: adapters/lmdb-failing-disk, cluster/full-log.
    'cli/failing-disk',
    'cluster/disk-errors',
    'cluster/full-disk',
    'cluster/io-error',

    // Several nodes. Also: cluster/nodes, cluster/same-answers, adapters/postgres-store, -schema and -bus, and
    // adapters/redis-conformance.
    'adapters/fallback-shared',
    'adapters/postgres-bus-faults',
    'adapters/postgres-clocks',
    'adapters/postgres-foreign-rows',
    'adapters/postgres-pooled-store',
    'adapters/postgres-restarts',
    'adapters/postgres-shared-faults',
    'adapters/redis-faults',
    'adapters/redis-foreign-values',
    'adapters/redis-opening',
    'browser/nodes',
    'cli/engine-certificates',
    'cli/replaced-certificates',
    'cluster/nodes-crash',
    'cluster/nodes-notify',
    'cluster/nodes-redis',
    'cluster/nodes-schema',
    'delayed-shared',

    // Moves to other stores, and what operators rarely need. Also: cli/migrate, cli/backup, cli/restore, cli/doctor-deep.
    'cli/backup-files',
    'cli/doctor-bucket',
    'cli/long-snapshots',
    'cli/migrate-engines',
    'cli/migrate-half-copied',
    'cli/ownership',
    'cluster/migrate',

    // Plugins that are missing, refused, stuck or slow. Also: plugins/optional-plugin, plugins/failed-load, plugins/jobs.
    'plugins/bad-plugins',
    'plugins/channels-cluster',
    'plugins/in-process-failures',
    'plugins/isolation',
    'plugins/missing-plugins',
    'plugins/refused-plugins',

    // Other browsers, tabs that crash or share a socket, and pages beside the widget. Also: browser/demo and most of
    // browser/widget*, client/shared-socket.
    'browser/docs',
    'browser/examples',
    'browser/firefox',
    'browser/shared-socket',
    'browser/widget-crashes',

    // The package as npm installs it. Also: package/readme.
    'package/entries',
    'package/pack',

    // Large and random inputs. Also: spec/bodies, spec/properties, http/floods, domain/crdt, adapters/media.
    'adapters/lmdb-bit-flips',
    'adapters/media-mutations',
    'client/mirror',
    'cluster/shared-documents',
    'domain/large-states',
    'fuzz/fuzz',
  ].map((name) => `test/${name}.test.ts`),
);
