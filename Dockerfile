# syntax=docker/dockerfile:1
# docker build --target cpu -t kernelport:cpu .     serves on the CPU
# docker build --target gpu -t kernelport:gpu .     serves on NVIDIA GPUs (needs the NVIDIA container toolkit on the host)
# Both serve /models when something is mounted there, else the built-in tiny model.
ARG PYTHON_VERSION=3.12

FROM python:${PYTHON_VERSION}-slim AS wheel
WORKDIR /src
COPY pyproject.toml README.md LICENSE ./
COPY app app
RUN pip wheel --no-cache-dir --no-deps --wheel-dir /wheels .

FROM python:${PYTHON_VERSION}-slim AS cpu-packages
COPY constraints.txt /tmp/constraints.txt
COPY --from=wheel /wheels /wheels
RUN python -m venv /opt/kernelport \
    && /opt/kernelport/bin/pip install --no-cache-dir --constraint /tmp/constraints.txt "$(echo /wheels/*.whl)[cpu]"

FROM python:${PYTHON_VERSION}-slim AS gpu-packages
COPY constraints.txt /tmp/constraints.txt
COPY --from=wheel /wheels /wheels
RUN python -m venv /opt/kernelport \
    && /opt/kernelport/bin/pip install --no-cache-dir --constraint /tmp/constraints.txt "$(echo /wheels/*.whl)[gpu]"

FROM python:${PYTHON_VERSION}-slim AS runtime
RUN groupadd --gid 10001 kernelport \
    && useradd --uid 10001 --gid kernelport --no-create-home --home-dir /nonexistent --shell /usr/sbin/nologin kernelport
ENV PATH=/opt/kernelport/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    KERNELPORT_HOST=0.0.0.0 \
    KERNELPORT_PORT=8080
EXPOSE 8080
USER 10001:10001
WORKDIR /
# Ready or not, a live server is left alone; to be restarted it must have stopped answering.
HEALTHCHECK --interval=10s --timeout=3s --start-period=30s --retries=3 \
    CMD ["python", "-c", "import os, urllib.request as r; r.urlopen('http://127.0.0.1:' + os.environ['KERNELPORT_PORT'] + '/v2/health/live', timeout=2)"]
STOPSIGNAL SIGTERM
ENTRYPOINT ["kernelport", "serve"]

FROM runtime AS gpu
COPY --from=gpu-packages /opt/kernelport /opt/kernelport
ENV NVIDIA_VISIBLE_DEVICES=all \
    NVIDIA_DRIVER_CAPABILITIES=compute,utility

FROM runtime AS cpu
COPY --from=cpu-packages /opt/kernelport /opt/kernelport
