# gpumgr in a container: sampler, guard and dashboard of this machine's GPUs.
#
#   docker build -t gpumgr .
#   docker run --gpus all -p 7000:7000 gpumgr              watches; the sign-in link stands in its output
#   docker run --gpus all --privileged --pid=host -p 7000:7000 -v gpumgr:/var/lib/gpumgr gpumgr
#                                                          also guards, names processes, and keeps its history
#   docker run -p 7000:7000 gpumgr --sim 8                 without a GPU
#
# BASE may be any Debian 12 image.
ARG BASE=debian:bookworm-slim

FROM ${BASE} AS build
WORKDIR /src
COPY . .
RUN script/bootstrap && BUILD=/build script/build && DESTDIR=/image meson install --quiet -C /build

FROM ${BASE}
# The libraries that the two linked programs need, and nothing that builds.
RUN apt-get update -qq \
    && DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends \
        libjansson4 libcurl4 libevent-2.1-7 libevent-openssl-2.1-7 libncursesw6 libsodium23 libsqlite3-0 libssl3 libzstd1 zlib1g \
        ca-certificates \
    && rm -rf /var/lib/apt/lists/*
COPY --from=build /image /
# A container's own address is not the loopback: it listens on all, plainly, and whoever publishes the port decides who
# reaches it. Give tls.cert and tls.key, or a proxy with TLS, where that is not only this machine.
ENV GPUMGR_DIR=/var/lib/gpumgr \
    GPUMGR_LISTEN=0.0.0.0:7000 \
    GPUMGR_LISTEN_PLAIN=true \
    GPUMGR_SERVER_PRINT_LINK=true \
    NVIDIA_VISIBLE_DEVICES=all \
    NVIDIA_DRIVER_CAPABILITIES=utility
VOLUME /var/lib/gpumgr
EXPOSE 7000
STOPSIGNAL SIGTERM
ENTRYPOINT ["gpumgr", "up"]
