# estimator-bridge on CPUs. From a clone:
#   docker build --tag estimator-bridge .
#   docker run --rm --volume "$PWD:/work" estimator-bridge compare examples/digits/train.py
FROM python:3.12-slim
COPY . /source
RUN python -m pip install --no-cache-dir "/source[examples]"
# Reports and checkpoints that are written to a mounted folder belong to its user: docker run --user "$(id -u):$(id -g)".
ENV HOME=/tmp TF_CPP_MIN_LOG_LEVEL=2
WORKDIR /work
ENTRYPOINT ["estimator-bridge"]
CMD ["--help"]
