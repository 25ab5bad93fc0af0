# Functions made of others.
data {
  train = idx("x", "label")
  x     : f32[6]
  label : class[3]
}

model {
  y = linear(gelu(x) + silu(x) + leaky_relu(x, 0.2) + softplus(x) + tanh(x) + sigmoid(x), 3)
}

train {
  loss      = cross_entropy(y, label)
  optimizer = sgd(0.1)
  batch     = 4
}
