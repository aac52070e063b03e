import processOnSpawn from 'process-on-spawn';

// Preloaded by every test process (.taprc). tap adds the module loader with which it measures coverage to the environment of each
// child process. Coverage is off, and the loader more than doubles the start of the servers and commands that tests run.
processOnSpawn.removeAllListeners();
delete process.env['NODE_OPTIONS'];
