// A list of the open threads of a page, and the widget, on one connection. React 18 or later.
import { useEffect, useRef } from 'react';
import { createRoot } from 'react-dom/client';
import { CollabSession } from 'collab/client';
import { useThreads } from 'collab/react';

const ROOM = 'docs/intro';
const session = new CollabSession({
  serverUrl: 'https://comments.example.com',
  publishableKey: 'pk_…',
  token: async () => (await fetch('/collab-token', { method: 'POST' })).text(),
});

function Comments() {
  const widget = useRef(null);
  // React 18 would pass the session as an attribute; with React 19, `session={session}` is enough.
  useEffect(() => {
    widget.current.session = session;
  }, []);
  return <collab-comments ref={widget} room={ROOM} />;
}

function OpenThreads() {
  const open = useThreads(session, ROOM).filter(({ resolved }) => !resolved);
  return (
    <section>
      <h2>Open threads: {open.length}</h2>
      <ul>{open.map(({ id, comments }) => <li key={id}>{comments[0]?.body}</li>)}</ul>
    </section>
  );
}

createRoot(document.getElementById('app')).render(<><OpenThreads /><Comments /></>);
