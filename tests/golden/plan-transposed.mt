# g is read from h transposed, so that it cannot take h's place.
data {
  train = idx("x", "label")
  x     : f32[512]
  label : class[10]
}

model {
  h = reshape(linear(x, 1024), [32, 32])
  g = relu(flatten(transpose(h, 0, 1)))
  k = tanh(linear(g, 512))
  z = linear(k, 10)
}

train {
  loss      = cross_entropy(z, label)
  optimizer = sgd(0.1)
  batch     = 32
}
