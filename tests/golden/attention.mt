# Batched products.
data {
  train = idx("x", "label")
  x     : f32[6]
  label : class[3]
}

model {
  a = reshape(x, [3, 2])
  s = softmax(matmul(a, a, transpose_b = true) / sqrt(2))
  y = linear(flatten(matmul(s, a)), 3)
}

train {
  loss      = cross_entropy(y, label)
  optimizer = sgd(0.1)
  batch     = 4
}
