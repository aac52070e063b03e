/** The error of a server that cannot listen, for the operator. */
export function cannotListen(host: string, port: number): Error {
  return new Error(
    `Cannot listen on ${host}, port ${port}: the port is in use, or this machine does not have the address.`,
  );
}
