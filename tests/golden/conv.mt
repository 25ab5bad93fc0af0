# Convolutions become products of windows; between them, no transposes are left. Batch norm takes two sums forward, two back.
data {
  train = idx("images", "labels")
  image : u8[3, 8, 8]
  label : class[4]
}
model {
  a = relu(batch_norm(conv2d(image / 255, 16, 3, padding = 1, bias = false)))
  h = linear(global_avg_pool(conv2d(a, 8, 3, stride = 2, bias = false)), 4)
}
train {
  loss      = cross_entropy(h, label)
  optimizer = sgd(0.1)
  batch     = 4
}
