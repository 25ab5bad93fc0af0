data {
  train = idx("images", "labels")
  x     : f32[6, 1, 1]
  label : class[3]
}
model {
  y = flatten(instance_norm(x)) + global_max_pool(flatten(x))
}
train {
  loss      = cross_entropy(linear(y, 3), label)
  optimizer = sgd(0.1)
}
