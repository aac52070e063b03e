# The server as an image for x64 and arm64: docker build -t collab:0.1.0 .
# docs/deploy/README.md says how to run it. test/deploy/files.test.ts checks this file.

FROM node:24-trixie-slim AS build
WORKDIR /src
COPY package.json package-lock.json .npmrc ./
RUN npm ci
COPY . .
RUN npm run build
# The clients of PostgreSQL and Redis, which nodes that share their data need (docs/deploy/cluster.md), in the versions that are tested.
RUN npm pkg set $(node -p "['pg', '@redis/client'].map((name) => 'dependencies.' + name + '=' + require('./package.json').devDependencies[name]).join(' ')") \
  && npm pkg delete devDependencies.pg devDependencies.@redis/client peerDependencies peerDependenciesMeta \
  && npm prune --omit=dev
# The HTTP core has one binary for each platform and version of Node; the others are 240 MB.
RUN find node_modules/uWebSockets.js -name 'uws_*.node' ! -name "uws_$(node -p '[process.platform, process.arch, process.versions.modules].join("_")').node" -delete

FROM node:24-trixie-slim
ENV NODE_ENV=production COLLAB_DIR=/var/lib/collab COLLAB_HOST=0.0.0.0
COPY --from=build /src/package.json /src/LICENSE /opt/collab/
COPY --from=build /src/node_modules /opt/collab/node_modules
COPY --from=build /src/dist /opt/collab/dist
RUN ln -s /opt/collab/dist/bin/collab.js /usr/local/bin/collab && install -d -o node -g node -m 700 /var/lib/collab
USER node
WORKDIR /var/lib/collab
VOLUME /var/lib/collab
EXPOSE 8787
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s CMD ["node", "-e", "fetch('http://127.0.0.1:' + (process.env.COLLAB_PORT || 8787) + '/readyz').then(({ ok }) => process.exit(ok ? 0 : 1), () => process.exit(1))"]
ENTRYPOINT ["collab"]
CMD ["start"]
