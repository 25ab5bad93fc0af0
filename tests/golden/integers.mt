# mtc --precision int8
# Products of integers: on a GPU on tensor cores, with bf16 for what is kept beside them.
data {
  train = npz("train.npz")
  image : f32[32, 8, 8]
  label : class[10]
}

model {
  h      = relu(conv2d(image, 64, 1, bias = false))
  sum    = relu(conv2d(h, 64, 3, padding = 1, bias = false) + h)
  scores = linear(flatten(sum), 10)
}

train {
  loss      = cross_entropy(scores, label)
  optimizer = sgd(0.1)
  batch     = 64
}
