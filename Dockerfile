# An image of Tocsin: the Debian package, in a Debian without anything else.
#   docker build -t tocsin .
#   docker run -e TOCSIN_AUTH_ALLOW_UNAUTHENTICATED=true -p 127.0.0.1:7420:7420 -v tocsin:/var/lib/tocsin tocsin
# docs/operations.md, "Containers", says more.
FROM debian:bookworm AS build
RUN apt-get update && apt-get install -y --no-install-recommends ca-certificates make
WORKDIR /src
COPY . .
RUN make package

FROM debian:bookworm-slim
COPY --from=build /src/build/package/tocsin_*.deb /tmp/
RUN apt-get update \
  && apt-get install -y --no-install-recommends ca-certificates /tmp/tocsin_*.deb \
  && rm -rf /tmp/tocsin_*.deb /var/lib/apt/lists/*
# Other containers have to reach it. Without access tokens it refuses to start like this, unless somebody allows it.
ENV TOCSIN_HTTP_LISTEN=0.0.0.0:7420 TOCSIN_RESP_LISTEN=0.0.0.0:7421
USER tocsin
WORKDIR /var/lib/tocsin
VOLUME /var/lib/tocsin
EXPOSE 7420 7421
# Recovery of a large journal may take some minutes.
HEALTHCHECK --interval=10s --timeout=3s --start-period=5m CMD ["tocsin", "health", "--timeout", "2s"]
STOPSIGNAL SIGTERM
ENTRYPOINT ["tocsind", "--config", "/etc/tocsin/tocsin.toml"]
