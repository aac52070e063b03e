import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import { callbackify } from 'node:util';
import { type ParsedMail, simpleParser } from 'mailparser';
import { SMTPServer, type SMTPServerOptions } from 'smtp-server';
import type { Test } from 'tap';

/** A mail as the server got it. */
export interface ReceivedMail extends ParsedMail {
  readonly source: string;
  readonly user: string | undefined;
  readonly recipients: readonly string[];
}

/** An SMTP server that keeps what it receives. It is closed with the test. */
export interface MailServer {
  readonly port: number;
  readonly mails: ReceivedMail[];
  /** The SMTP error that recipients (`RCPT TO`) get; null to accept them. */
  refusal: { readonly code: number; readonly message: string } | null;
}

/**
 * Starts an SMTP server on a free port of the loopback interface: without TLS and authentication, unless `options` say
 * so.
 */
export async function startMailServer(t: Pick<Test, 'teardown'>, options: SMTPServerOptions = {}): Promise<MailServer> {
  const smtp = new SMTPServer({
    disabledCommands: ['AUTH', 'STARTTLS'],
    disableReverseLookup: true,
    closeTimeout: 100,
    ...options,
    onRcptTo: (_address, _session, done) =>
      done(
        server.refusal === null
          ? null
          : Object.assign(new Error(server.refusal.message), { responseCode: server.refusal.code }),
      ),
    onData: (stream, session, done) => {
      const chunks: Buffer[] = [];
      stream.on('data', (chunk: Buffer) => chunks.push(chunk));
      stream.on('end', () => {
        const source = Buffer.concat(chunks);
        const recipients = session.envelope.rcptTo.map(({ address }) => address);
        const parsed = simpleParser(source).then((mail) =>
          server.mails.push({ ...mail, source: source.toString(), user: session.user, recipients }),
        );
        // The mail is accepted once it is parsed, so that a test which saw the acceptance finds it.
        callbackify(() => parsed)((error) => done(error));
      });
    },
  });
  smtp.on('error', () => {});
  smtp.listen(0, '127.0.0.1');
  await once(smtp.server, 'listening');
  const server: MailServer = { port: (smtp.server.address() as AddressInfo).port, mails: [], refusal: null };
  t.teardown(() => new Promise<void>((resolve) => smtp.close(() => resolve())));
  return server;
}
